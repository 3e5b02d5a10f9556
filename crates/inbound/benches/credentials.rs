//! `cargo bench -p a2ad-inbound --bench credentials -- [--rounds N] [--calls N]`: what it costs to verify each kind of
//! credential, in nanoseconds, as a table in Markdown.
//!
//! Only verification is measured: from the headers of a request to its caller, on one thread, in rounds in which the
//! kinds take turns. A fresh token is one that the cache of verified tokens does not have.

#![allow(clippy::unwrap_used, reason = "a program for measurements fails on an unexpected error")]
#![allow(clippy::print_stdout, reason = "the table is its output")]

#[path = "../tests/socket/tokens/signer.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod signer;

use std::{hint::black_box, sync::Arc, time::Instant};

use a2ad_inbound::{AuthOptions, CredentialCheck, FetchKeys, Issuer, KeyFetchError, KeyUrl, NamedSecret};
use bytes::Bytes;
use engine::{Catalog, Clock, Engine, Feed, Limits, NewApiKey};
use futures_util::{
    FutureExt as _,
    future::{self, BoxFuture},
};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use protocol::{Timestamp, model::Secret};
use store::{Sqlite, SqliteOptions};

use self::signer::{Signer, jwks};

/// More than the cache of verified tokens has places for: in turn, none of them is found there.
const FRESH_TOKENS: usize = 5_000;
const SECRET: &[u8] = b"a secret for measuring, 32 bytes";
const BEARER: &str = "a static token for measuring";
const ISSUER: &str = "https://id.example";
/// Of the clock, which stands still.
const NOW: i64 = 1_800_000_000;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    // `cargo test` runs this program too, without this flag.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let number = |flag: &str, default: usize| {
        let at = args.iter().position(|arg| arg == flag);
        at.map_or(default, |at| args[at + 1].parse().unwrap())
    };
    let (rounds, calls) = (number("--rounds", 5), number("--calls", 200_000));
    // Keys are fetched and stored in tasks.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let bench = Bench::start().await;
        bench.load().await;
        print!("{}", bench.table(rounds, calls));
    });
}

struct Bench {
    check: CredentialCheck,
    rows: Vec<Row>,
    _folder: tempfile::TempDir,
}

/// A kind of credential.
struct Row {
    name: &'static str,
    /// The heads of requests, used in turn.
    heads: Vec<HeaderMap>,
    /// The principal begins like this.
    principal: Option<&'static str>,
}

impl Bench {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (feed, clock) = (Feed::default(), Clock::manual(Timestamp::from_millis(NOW * 1_000)));
        let options = SqliteOptions::at(folder.path().join("a2ad.db"));
        let store = Arc::new(Sqlite::open(&options, feed.clone(), &clock).unwrap());
        let engine = Engine::start(store, feed, Catalog::new("", []), clock.clone(), Limits::default());
        let (rsa, ec) = (Signer::rs256(), Signer::es256());
        let options = AuthOptions {
            secret: Some(NamedSecret { name: "SECRET".into(), secret: secret(SECRET) }),
            bearer: Some(Secret::new(BEARER)),
            issuers: vec![Issuer {
                issuer: ISSUER.into(),
                audience: "a2ad".into(),
                jwks_uri: Some(format!("{ISSUER}/keys")),
            }],
            fetch: Some(Arc::new(FixedKeys(jwks(&[&rsa, &ec]).into()))),
            ..AuthOptions::default()
        };
        let new = NewApiKey { tenant: "default", agent: "echo", owner: None, prefix: "a2ad_" };
        let (_, key) = engine.api_keys().create(&new, 1, clock.now()).await.unwrap();
        let key = [(HeaderName::from_static("x-api-key"), HeaderValue::try_from(key.expose()).unwrap())];
        let with_secret = Signer::hs256(SECRET).token(&format!(r#"{{"sub":"alice","exp":{}}}"#, NOW + 600));
        let fresh =
            |signer: &Signer| (0..FRESH_TOKENS).map(|number| bearer(&of_issuer(signer, number))).collect();
        let row = |name, principal, heads| Row { name, heads, principal: Some(principal) };
        let rows = vec![
            Row { name: "none", heads: vec![HeaderMap::new()], principal: None },
            row("static token", "bearer", vec![bearer(BEARER)]),
            row("API key", "key:", vec![key.into_iter().collect()]),
            row("HS256", "SECRET#alice", vec![bearer(&with_secret)]),
            row("ES256, repeated", ISSUER, vec![bearer(&of_issuer(&ec, 0))]),
            row("RS256, repeated", ISSUER, vec![bearer(&of_issuer(&rsa, 0))]),
            row("ES256, fresh", ISSUER, fresh(&ec)),
            row("RS256, fresh", ISSUER, fresh(&rsa)),
        ];
        Self { check: CredentialCheck::new(&options, &engine), rows, _folder: folder }
    }

    /// Loads keys, and checks that every credential is accepted.
    async fn load(&self) {
        for row in &self.rows {
            for head in &row.heads {
                let principal = self.check.principal(head).await.unwrap();
                let expected = match row.principal {
                    None => principal.is_none(),
                    Some(start) => principal.is_some_and(|principal| principal.starts_with(start)),
                };
                assert!(expected, "{}", row.name);
            }
        }
    }

    fn table(&self, rounds: usize, calls: usize) -> String {
        let mut measured = vec![Vec::new(); self.rows.len()];
        for _ in 0..rounds {
            for (row, figures) in self.rows.iter().zip(&mut measured) {
                figures.push(self.measure(row, calls));
            }
        }
        let mut text = String::from("| credential | ns | least and greatest of a round |\n|---|--:|--:|\n");
        for (row, mut figures) in self.rows.iter().zip(measured) {
            figures.sort_by(f64::total_cmp);
            let (least, median, greatest) = (figures[0], figures[rounds / 2], figures[rounds - 1]);
            text += &format!("| {} | {median:.0} | {least:.0}..{greatest:.0} |\n", row.name);
        }
        text
    }

    /// Nanoseconds of one verification.
    fn measure(&self, row: &Row, calls: usize) -> f64 {
        // Signatures take a hundred times longer than the others.
        let calls = if row.heads.len() > 1 { calls.div_ceil(20).max(FRESH_TOKENS) } else { calls };
        let started = Instant::now();
        for head in row.heads.iter().cycle().take(calls) {
            let principal = self.check.principal(black_box(head)).now_or_never();
            black_box(principal.expect("everything is loaded").unwrap());
        }
        started.elapsed().as_secs_f64() * 1e9 / calls as f64
    }
}

struct FixedKeys(Bytes);

impl FetchKeys for FixedKeys {
    fn fetch(&self, _: KeyUrl) -> BoxFuture<'static, Result<Bytes, KeyFetchError>> {
        Box::pin(future::ready(Ok(self.0.clone())))
    }
}

fn secret(bytes: &[u8]) -> Secret {
    Secret::new(String::from_utf8_lossy(bytes))
}

fn bearer(token: &str) -> HeaderMap {
    [(header::AUTHORIZATION, HeaderValue::try_from(format!("Bearer {token}")).unwrap())].into_iter().collect()
}

/// A token as issuers make them, different for each number.
fn of_issuer(signer: &Signer, number: usize) -> String {
    signer.token(&format!(
        r#"{{"iss":"{ISSUER}","aud":["a2ad","profile"],"sub":"auth0|5f7c8ec7c33c6c004bbafe82","iat":{NOW},"exp":{},"azp":"client-{number}","scope":"openid profile email"}}"#,
        NOW + 600
    ))
}
