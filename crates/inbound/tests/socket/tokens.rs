//! Callers with JSON Web Tokens: which are accepted, as whom, and which are refused before anything runs.
//!
//! The keys of issuers are fetched from a server on loopback. Tokens are made by a few lines of the test; those in
//! `samples` were made by another library (Python's `cryptography`, with OpenSSL).

mod bad_tokens;
mod end_users;
mod issuers;
mod key_cache;
mod key_server;
mod log;
mod secrets;
pub(crate) mod signer;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use a2ad_inbound::{AgentSettings, AuthMethod, AuthMethods, AuthOptions, Issuer, NamedSecret};
use protocol::model::Secret;

use self::{
    key_server::KeyServer,
    signer::{Signer, jwks},
};
use crate::common::{Answer, Server, Setup, agents, request, send_params};

/// [`NOW`](crate::common::NOW) in seconds.
const NOW: i64 = 1_767_323_045;
/// The audience of issuers' tokens.
const AUDIENCE: &str = "a2ad";
/// The audience of tokens with a shared secret.
const OWN_URL: &str = "https://agents.example";
const SECRET: &[u8] = b"a secret of the server, 32 bytes";
const ACME_SECRET: &[u8] = b"a secret of acme, also 32 bytes.";

/// A server whose agent `who` accepts tokens, and the server of its issuer's keys.
struct Fixture {
    server: Server,
    keys: KeyServer,
    /// How often the agent has run.
    runs: Arc<AtomicUsize>,
}

impl Fixture {
    /// An issuer with these keys, whose address is configured.
    async fn with_keys(keys: &[&Signer]) -> Self {
        let fixture = Self::open(|_, _| {}).await;
        fixture.keys.serve("/keys", &jwks(keys));
        fixture
    }

    /// With changed options and settings.
    async fn open(change: impl FnOnce(&mut AuthOptions, &mut AgentSettings)) -> Self {
        let keys = KeyServer::start().await;
        let issuer =
            Issuer { issuer: keys.url(""), audience: AUDIENCE.into(), jwks_uri: Some(keys.url("/keys")) };
        let text = |secret: &[u8]| Secret::new(std::str::from_utf8(secret).unwrap());
        let mut options = AuthOptions {
            secret: Some(NamedSecret { name: "A2A_SECRET".into(), secret: text(SECRET) }),
            org_secrets: [("acme.example".to_owned(), text(ACME_SECRET))].into(),
            audiences: vec![OWN_URL.into(), "https://other-name.example".into()],
            issuers: vec![issuer],
            fetch: Some(keys.fetcher()),
            ..AuthOptions::default()
        };
        let methods = [AuthMethod::Jwt, AuthMethod::Oidc].into_iter().collect::<AuthMethods>();
        let mut settings = AgentSettings { auth: methods, ..AgentSettings::default() };
        change(&mut options, &mut settings);
        let (agent, runs) = agents::who_calls();
        let mut setup = Setup { agents: vec![agent], ..Setup::default() };
        setup.options.auth = options;
        setup.options.agents.insert("who".into(), settings);
        Self { server: setup.open().await, keys, runs }
    }

    /// Calls the agent with a token.
    async fn call(&self, token: &str) -> Answer {
        self.call_with(&format!("authorization: Bearer {token}")).await
    }

    /// Calls the agent with these headers.
    async fn call_with(&self, headers: &str) -> Answer {
        let head = format!("POST /a2a/who HTTP/1.1\r\na2a-version: 1.0\r\n{headers}");
        self.server.exchange(&head, &request("SendMessage", &send_params("hi", ""))).await
    }

    /// The principal for which a token is accepted.
    async fn principal(&self, token: &str) -> String {
        let answer = self.call(token).await;
        let caller = answer.body.split_once('<').and_then(|(_, rest)| rest.split_once("|>"));
        caller.unwrap_or_else(|| panic!("{}: {}", answer.status, answer.body)).0.to_owned()
    }

    /// Checks that a token is refused for this reason.
    async fn refuses(&self, token: &str, reason: &str) {
        let (before, answer) = (self.runs.load(Ordering::Relaxed), self.call(token).await);
        assert_eq!(answer.status, 401, "{}", answer.body);
        assert!(answer.body.contains(reason), "{reason}: {}", answer.body);
        assert_eq!(self.runs.load(Ordering::Relaxed), before, "the agent has run");
    }

    /// The claims of a valid token of the issuer, with these in addition.
    fn claims(&self, more: &str) -> String {
        let issuer = self.keys.url("");
        format!(r#"{{"iss":"{issuer}","aud":"{AUDIENCE}","sub":"alice","exp":{}{more}}}"#, NOW + 600)
    }

    /// A valid token.
    fn token(&self, signer: &Signer) -> String {
        signer.token(&self.claims(""))
    }

    /// The principal of [`token`](Self::token).
    fn alice(&self) -> String {
        self.keys.url("#alice")
    }
}

/// Lets time pass for caches, without waiting. Validity depends on the clock of the engine, which does not change.
async fn skip(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
