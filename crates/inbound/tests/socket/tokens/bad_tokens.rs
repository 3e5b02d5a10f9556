//! Tokens that must not be accepted: each differs from a valid one in one respect.

mod claims;
mod headers;
mod keys;
mod signatures;
mod structure;

use std::sync::atomic::Ordering;

use a2ad_inbound::{AgentSettings, Profile};

use super::{
    ACME_SECRET, AUDIENCE, Fixture, NOW, SECRET,
    log::Log,
    signer::{Signer, encode, jwks},
};
use crate::common::{
    Answer,
    generation::{Generation, UserMessage},
    request,
};

/// In the subject of every token: must be in no response and no log.
const MARK: &str = "reflected-subject";

/// A token with a name for messages of the test.
struct BadToken {
    name: String,
    token: String,
}

/// What tokens are made of: the keys of the issuer, and its URL.
struct Material {
    issuer: String,
    secret: Signer,
    rsa: Signer,
    es256: Signer,
    es384: Signer,
    eddsa: Signer,
    tokens: Vec<BadToken>,
}

impl Material {
    fn new(issuer: String) -> Self {
        Self {
            issuer,
            secret: Signer::hs256(SECRET),
            rsa: Signer::rs256(),
            es256: Signer::es256(),
            es384: Signer::es384(),
            eddsa: Signer::eddsa(),
            tokens: Vec::new(),
        }
    }

    /// Those of the issuer.
    fn signers(&self) -> [&Signer; 4] {
        [&self.rsa, &self.es256, &self.es384, &self.eddsa]
    }

    /// The claims of a valid token of the issuer.
    fn claims(&self) -> String {
        format!(r#"{{"iss":"{}","aud":"{AUDIENCE}","sub":"{MARK}","exp":{}}}"#, self.issuer, NOW + 600)
    }

    /// The claims of a valid token with the secret.
    fn secret_claims(&self) -> String {
        format!(r#"{{"sub":"{MARK}","exp":{}}}"#, NOW + 600)
    }

    fn add(&mut self, name: impl Into<String>, token: impl Into<String>) {
        self.tokens.push(BadToken { name: name.into(), token: token.into() });
    }

    /// One token of each kind, all of which are accepted.
    fn valid(&self) -> Vec<String> {
        let claims = self.claims();
        let of_issuer = self.signers().map(|signer| signer.token(&claims));
        of_issuer.into_iter().chain([self.secret.token(&self.secret_claims())]).collect()
    }

    fn add_all(&mut self) {
        headers::add(self);
        claims::add(self);
        keys::add(self);
        signatures::add(self);
        structure::add(self);
    }
}

/// The header of a signer's tokens with another algorithm.
fn header_with(signer: &Signer, algorithm: &str) -> String {
    format!(r#"{{"alg":"{algorithm}","typ":"JWT","kid":"{}"}}"#, signer.id)
}

async fn material(change: impl FnOnce(&mut AgentSettings)) -> (Fixture, Material) {
    let fixture = Fixture::open(|_, settings| change(settings)).await;
    let mut material = Material::new(fixture.keys.url(""));
    fixture.keys.serve("/keys", &jwks(&material.signers()));
    material.add_all();
    (fixture, material)
}

#[tokio::test]
async fn no_bad_token_is_accepted() {
    let (log, _guard) = Log::start();
    let (fixture, material) = material(|_| {}).await;
    for token in material.valid() {
        assert_eq!(fixture.call(&token).await.status, 200, "{token}");
    }
    let runs = fixture.runs.load(Ordering::Relaxed);
    let logged = log.text().len();
    assert!(log.text().contains("who"), "calls are logged: {}", log.text());
    assert!(material.tokens.len() >= 120, "{}", material.tokens.len());
    for bad in &material.tokens {
        let answer = fixture.call(&bad.token).await;
        assert_eq!(answer.status, 401, "{}: {}", bad.name, answer.body);
        assert!(answer.body.contains(r#""reason":"UNAUTHENTICATED""#), "{}: {}", bad.name, answer.body);
        check_not_reflected(bad, &format!("{answer:?}"));
    }
    let log = &log.text()[logged..];
    material.tokens.iter().for_each(|bad| check_not_reflected(bad, log));
    assert_eq!(fixture.runs.load(Ordering::Relaxed), runs, "the agent has run");
    // Neither addresses in tokens nor keys that do not exist cause requests so soon.
    assert_eq!(fixture.keys.requests(), ["/keys"]);
    // The valid ones still are.
    for token in material.valid() {
        assert_eq!(fixture.call(&token).await.status, 200, "{token}");
    }
}

/// Neither the token nor one of its longer parts, nor what they contain.
fn check_not_reflected(bad: &BadToken, text: &str) {
    // Shorter ones may be there for other reasons.
    let parts = bad.token.split('.').chain([bad.token.as_str()]).filter(|part| part.len() >= 12);
    for part in parts.chain([MARK]) {
        assert!(!text.contains(part), "{}: {part:.60} in {text:.2000}", bad.name);
    }
}

#[tokio::test]
async fn bad_token_is_refused_in_the_form_of_the_profile() {
    let (fixture, material) = material(|settings| settings.profile = Profile::pinkfish()).await;
    let generation = Generation::V03;
    let body = request("message/send", &generation.send_params(UserMessage::new("hi")));
    let call = async |token: &str| -> Answer {
        let head = format!("POST /a2a/who HTTP/1.1\r\nauthorization: Bearer {token}");
        fixture.server.exchange(&head, &body).await
    };
    for token in material.valid() {
        assert_eq!(call(&token).await.status, 200, "{token}");
    }
    let runs = fixture.runs.load(Ordering::Relaxed);
    for bad in &material.tokens {
        let answer = call(&bad.token).await;
        assert_eq!(answer.status, 403, "{}: {}", bad.name, answer.body);
        check_not_reflected(bad, &format!("{answer:?}"));
    }
    assert_eq!(fixture.runs.load(Ordering::Relaxed), runs, "the agent has run");
}

/// A header is plain text: other bytes are refused before a token is looked for in them.
#[tokio::test]
async fn bytes_that_are_not_text_are_refused() {
    let (fixture, material) = material(|_| {}).await;
    let token = &material.valid()[1];
    for bad in
        [token.replacen('.', "\u{3002}", 1), format!("{token}\u{a0}"), token.replacen('e', "\u{ff45}", 1)]
    {
        assert_eq!(fixture.call(&bad).await.status, 401, "{bad}");
    }
    assert_eq!(fixture.runs.load(Ordering::Relaxed), 0);
}
