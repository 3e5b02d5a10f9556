//! The callers of the matrix, and how they are identified.

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use protocol::Timestamp;

/// The secret of tokens, and the static token.
pub(super) const SECRET: &str = "a secret of the test, long enough";
pub(super) const BEARER: &str = "the-static-token-of-the-test";

/// The time of every clock.
pub(super) fn now() -> Timestamp {
    Timestamp::parse("2026-01-02T03:04:05.678Z").unwrap()
}

/// Somebody who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Principal {
    Anonymous,
    Alice,
    Bob,
    CarolForDan,
    CarolForEve,
    /// With a client certificate.
    Frank,
}

impl Principal {
    pub(super) const ALL: [Self; 6] =
        [Self::Anonymous, Self::Alice, Self::Bob, Self::CarolForDan, Self::CarolForEve, Self::Frank];

    /// A text that only the messages of this caller have.
    pub(super) fn marker(self) -> &'static str {
        match self {
            Self::Anonymous => "text-of-anonymous",
            Self::Alice => "text-of-alice",
            Self::Bob => "text-of-bob",
            Self::CarolForDan => "text-of-carol-for-dan",
            Self::CarolForEve => "text-of-carol-for-eve",
            Self::Frank => "text-of-frank",
        }
    }

    /// Its name and its end user, as they own tasks.
    pub(super) fn names(self, identified: Identified) -> (&'static str, &'static str) {
        match (identified, self) {
            (Identified::ByApplication, Self::Anonymous) => ("anonymous", ""),
            (Identified::ByApplication, Self::Alice) => ("alice", ""),
            (Identified::ByApplication, Self::Bob) => ("bob", ""),
            (Identified::ByApplication, Self::CarolForDan) => ("carol", "dan"),
            (Identified::ByApplication, Self::CarolForEve) => ("carol", "eve"),
            (Identified::ByApplication, Self::Frank) => ("frank", ""),
            (Identified::ByCredential, Self::Anonymous) => ("anonymous", "TEST_SECRET#nobody"),
            (Identified::ByCredential, Self::Alice) => ("TEST_SECRET#alice", "TEST_SECRET#alice"),
            (Identified::ByCredential, Self::Bob) => ("key:bob", "TEST_SECRET#bob"),
            (Identified::ByCredential, Self::CarolForDan) => ("bearer", "TEST_SECRET#dan"),
            (Identified::ByCredential, Self::CarolForEve) => ("bearer", "TEST_SECRET#eve"),
            (Identified::ByCredential, Self::Frank) => ("mtls:dn:CN=frank", "TEST_SECRET#frank"),
        }
    }
}

/// How callers are identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identified {
    /// By the application that mounts the router, with end users.
    ByApplication,
    /// By a JWT, an API key, the static token or a client certificate, with the token of an end user.
    ByCredential,
}

/// A token that identifies somebody for an hour.
pub(super) fn token(subject: &str) -> String {
    let exp = now().as_millis() / 1_000 + 3_600;
    let part = |json: String| URL_SAFE_NO_PAD.encode(json);
    let header = part(r#"{"alg":"HS256","typ":"JWT"}"#.to_owned());
    let signed = format!("{header}.{}", part(format!(r#"{{"sub":"{subject}","exp":{exp}}}"#)));
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    format!("{signed}.{signature}")
}
