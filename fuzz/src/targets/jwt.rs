//! F-jwt: JSON Web Tokens.
//!
//! Each input is used in three ways: as a token, as the claims and as the header of a token that is signed with the secret.
//! A token is accepted only if it is one of those that this target has made. Signed claims and headers are accepted
//! only if another reader of JSON finds in them what is required.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, LazyLock},
};

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::future::{self, BoxFuture};
use inbound::{AuthOptions, FetchKeys, Issuer, KeyFetchError, KeyUrl, NamedSecret, TokenCheck};
use protocol::{ErrorKind, Timestamp, model::Secret};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-jwt",
    name: "JSON Web Tokens: only tokens made by a holder of the keys are accepted",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

#[rustfmt::skip]
const DICTIONARY: &[&str] = &[
    ".", "..", "=", "==", "-", "_", "+", "/", "A", "AAAA", "eyJ", "eyJhbGciOiJub25lIn0", "eyJhbGciOiJIUzI1NiJ9", "alg", "typ",
    "kid", "crit", "jku", "x5u", "jwk", "b64", "none", "HS256", "RS256", "PS256", "ES256", "ES384", "EdDSA", "HS512", "JWT",
    "at+jwt", "exp", "nbf", "iat", "iss", "sub", "aud", "org_domain", "https://samples.example", "samples", "acme.example",
    "4102444800", "1767225600", "1e10", "1e400", "-1", "\\u0065xp", "\u{feff}", "\u{0}",
];

const SECRET: &[u8] = b"a secret for fuzzing of 32 bytes";
const ACME_SECRET: &[u8] = b"the secret of acme, also 32 byte";
const AUDIENCE: &str = "samples";
/// When tokens are verified, in seconds: their issuer's are valid from 2026 to 2100.
const NOW: i64 = 1_800_000_000;
const LEEWAY: f64 = 30.0;

/// Tokens of an issuer, made by another library with keys that nobody has any more.
const OF_ISSUER: &str = include_str!("../../../crates/inbound/tests/socket/tokens/samples/tokens.txt");
const JWKS: &str = include_str!("../../../crates/inbound/tests/socket/tokens/samples/jwks.json");

struct Fixture {
    runtime: Runtime,
    check: TokenCheck,
    /// Every token that may be accepted.
    made: HashSet<String>,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let text = |secret: &[u8]| Secret::new(String::from_utf8_lossy(secret));
    let options = AuthOptions {
        secret: Some(NamedSecret { name: "SECRET".into(), secret: text(SECRET) }),
        org_secrets: [("acme.example".to_owned(), text(ACME_SECRET))].into(),
        audiences: vec![AUDIENCE.into()],
        issuers: vec![Issuer {
            issuer: "https://samples.example".into(),
            audience: AUDIENCE.into(),
            jwks_uri: Some("https://samples.example/jwks".into()),
        }],
        fetch: Some(Arc::new(FixedKeys)),
        ..AuthOptions::default()
    };
    // Keys are fetched in tasks.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
    Fixture {
        runtime: runtime.expect("a runtime without I/O needs a thread only"),
        check: TokenCheck::new(&options),
        made: OF_ISSUER.lines().map(str::to_owned).chain(with_secrets()).collect(),
    }
});

struct FixedKeys;

impl FetchKeys for FixedKeys {
    fn fetch(&self, _: KeyUrl) -> BoxFuture<'static, Result<Bytes, KeyFetchError>> {
        Box::pin(future::ready(Ok(Bytes::from_static(JWKS.as_bytes()))))
    }
}

fn run(input: &[u8]) {
    if let Ok(token) = std::str::from_utf8(input) {
        assert!(!is_accepted(token) || FIXTURE.made.contains(token), "a token that nobody has made");
    }
    if is_accepted(&signed(br#"{"alg":"HS256"}"#, input, SECRET)) {
        check_claims(input);
    }
    if is_accepted(&signed(input, format!(r#"{{"sub":"a","exp":{}}}"#, NOW + 1).as_bytes(), SECRET)) {
        check_header(input);
    }
    // The secret of an organisation verifies nothing that does not name it, in any case.
    if is_accepted(&signed(br#"{"alg":"HS256"}"#, input, ACME_SECRET)) {
        let domain = text(&members(input), "org_domain").map(|domain| domain.to_lowercase());
        assert_eq!(domain.as_deref(), Some("acme.example"));
    }
}

fn is_accepted(token: &str) -> bool {
    let now = Timestamp::from_millis(NOW * 1_000);
    match FIXTURE.runtime.block_on(FIXTURE.check.principal(token, now)) {
        Ok(principal) => {
            assert!(!principal.contains(char::is_control) && principal.contains('#'), "{principal:?}");
            true
        }
        Err(error) => {
            // The keys are there, so nothing is unavailable.
            assert_eq!(error.kind, ErrorKind::Unauthenticated, "{error:?}");
            false
        }
    }
}

/// What accepted claims have, as another reader finds it.
fn check_claims(claims: &[u8]) {
    let members = members(claims);
    let time = |name| members.get(name).map(number);
    assert!(time("exp").is_some_and(|exp| exp + LEEWAY > NOW as f64 && exp < 1e12));
    assert!(time("nbf").is_none_or(|nbf| nbf - LEEWAY <= NOW as f64));
    assert!(time("iat").is_none_or(f64::is_finite));
    if let Some(audience) = members.get("aud") {
        let one: Result<String, _> = serde_json::from_str(audience.get());
        let many: Result<Vec<String>, _> = serde_json::from_str(audience.get());
        let audiences = one.map_or_else(|_| many.expect("text or a list of texts"), |one| vec![one]);
        assert!(audiences.iter().any(|audience| audience == AUDIENCE));
    }
    assert!(
        text(&members, "iss").is_none_or(|issuer| !issuer.is_empty() && issuer != "https://samples.example")
    );
    assert!(text(&members, "sub").is_some_and(|subject| (1..=256).contains(&subject.chars().count())));
    text(&members, "org_domain");
}

fn check_header(header: &[u8]) {
    let members = members(header);
    assert_eq!(text(&members, "alg").as_deref(), Some("HS256"));
    assert!(members.get("crit").is_none());
    let kind = text(&members, "typ").unwrap_or_else(|| "JWT".into()).to_lowercase();
    assert!(kind == "jwt" || kind == "at+jwt");
}

/// The members of an accepted object.
fn members(document: &[u8]) -> Members {
    serde_json::from_slice(document).expect("accepted: an object whose members occur once")
}

/// The members of an object, each of which occurs once.
struct Members(HashMap<String, Box<RawValue>>);

impl Members {
    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).map(|value| &**value)
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Unique;
        impl<'de> Visitor<'de> for Unique {
            type Value = Members;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object whose members occur once")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = HashMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    if members.insert(name, value).is_some() {
                        return Err(A::Error::custom("a member occurs twice"));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Unique)
    }
}

fn text(members: &Members, name: &str) -> Option<String> {
    members.get(name).map(|value| serde_json::from_str(value.get()).expect("accepted: text"))
}

fn number(value: &RawValue) -> f64 {
    serde_json::from_str(value.get()).expect("accepted: a number")
}

fn signed(header: &[u8], claims: &[u8], secret: &[u8]) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Valid tokens of the secrets.
fn with_secrets() -> Vec<String> {
    let header = br#"{"alg":"HS256","typ":"JWT"}"#;
    vec![
        signed(header, br#"{"sub":"b","exp":4102444800}"#, SECRET),
        signed(header, br#"{"sub":"a","exp":4102444800.5,"nbf":1,"aud":["samples"],"iss":"x"}"#, SECRET),
        signed(header, br#"{"sub":"a","exp":4102444800,"org_domain":"acme.example"}"#, ACME_SECRET),
    ]
}

/// Valid tokens, and claims and headers of every kind.
fn corpus() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"exp":4102444800,"nbf":0,"iat":0.5,"sub":"alice","aud":"samples","iss":"x","org_domain":"acme.example"}"#,
        r#"{"exp":1800000001,"aud":["a","samples"],"x":{"a":[1,{}]},"sub":"b"}"#,
        r#"{"exp":1799999971,"sub":"c","org_domain":"acme.example"}"#,
        r#"{"exp":1799999970}"#,
        r#"{"exp":"4102444800"}"#,
        r#"{"alg":"HS256","typ":"at+jwt","kid":"k","jku":"https://x/","jwk":{"kty":"oct","k":"AA"}}"#,
        r#"{"alg":"HS256","crit":["b64"],"b64":false}"#,
        r#"{"alg":"none"}"#,
        "a.b.c",
        "..",
        "",
    ];
    let tokens = OF_ISSUER.lines().map(str::to_owned).chain(with_secrets());
    let without_signature = |token: &str| token.rsplit_once('.').map(|(signed, _)| format!("{signed}."));
    let unsigned: Vec<String> = OF_ISSUER.lines().filter_map(without_signature).collect();
    let texts = texts.map(str::to_owned);
    tokens.chain(unsigned).chain(texts).map(String::into_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Mutator;

    #[test]
    fn corpus_passes_and_every_made_token_is_accepted() {
        assert!(FIXTURE.made.len() == 8 && FIXTURE.made.iter().all(|token| is_accepted(token)));
        let accepted = |input: &&Vec<u8>| std::str::from_utf8(input).is_ok_and(is_accepted);
        assert_eq!(corpus().iter().filter(accepted).count(), 8);
        let claims = |input: &&Vec<u8>| is_accepted(&signed(br#"{"alg":"HS256"}"#, input, SECRET));
        assert_eq!(corpus().iter().filter(claims).count(), 3);
        corpus().iter().for_each(|input| run(input));
        let mutator = Mutator::new(corpus(), DICTIONARY, 7);
        let mutated: Vec<Vec<u8>> = (0..2_000).map(|number| mutator.input(1_000 + number)).collect();
        let count = mutated.iter().filter(claims).count();
        assert!((20..1_500).contains(&count), "{count} of 2000 are claims that are accepted");
    }
}
