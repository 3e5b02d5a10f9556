//! Credentials that a caller can make: tokens signed with a shared secret, and signatures of internal requests.
//!
//! This is code of the selftest only, so that an error in the server's own code does not hide itself.

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// The lifetime of a token, unless its claims state another expiry.
const LIFETIME_SECONDS: i64 = 300;

/// A JWT signed with HS256 (RFC 7515). It has the claims `sub` and `exp`; `claims` is an object that replaces them or
/// adds others, where null removes a claim.
pub(crate) fn hs256(secret: &str, claims: &Value) -> String {
    let content = content(r#"{"alg":"HS256","typ":"JWT"}"#, claims);
    let signature = base64url(hmac_sha256(secret, &content).as_ref());
    format!("{content}.{signature}")
}

/// A JWT without a signature, as its header states.
pub(crate) fn unsigned(claims: &Value) -> String {
    content(r#"{"alg":"none","typ":"JWT"}"#, claims) + "."
}

/// The header and the claims of a JWT, which its signature covers.
pub(crate) fn content(header: &str, claims: &Value) -> String {
    let mut all = json!({ "sub": "ada", "exp": now() + LIFETIME_SECONDS });
    for (name, value) in claims.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    if let Some(members) = all.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    format!("{}.{}", base64url(header.as_bytes()), base64url(all.to_string().as_bytes()))
}

/// The signature of an internal request that wakes a task, valid until `expiry`.
pub(crate) fn wake_signature(secret: &str, task: &str, expiry: i64) -> String {
    let signature = hmac_sha256(secret, &format!("v1|{task}|{expiry}"));
    let hex: String = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v1.{expiry}.{hex}")
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "tokens for the server under test have its real time")]
pub(crate) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

pub(crate) fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn hmac_sha256(secret: &str, content: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected one was computed with `openssl dgst -sha256 -hmac`.
    #[test]
    fn signatures_are_those_of_another_program() {
        let expected = "v1.1700000000.8238d5f8678d66b0e7f1ebfbe91b2f867d543a557edf839e4e38152441ef4623";
        assert_eq!(wake_signature("secret", "task_1", 1_700_000_000), expected);
    }

    #[test]
    fn claims_are_replaced_added_and_removed() {
        let token = hs256("secret", &json!({ "exp": null, "aud": "a", "sub": "b" }));
        let claims = token.split('.').nth(1).unwrap();
        let claims = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        assert_eq!(claims, r#"{"aud":"a","sub":"b"}"#);
    }
}
