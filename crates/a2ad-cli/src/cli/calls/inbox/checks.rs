//! Verifies a delivery: its signature, the token of the webhook, and the token that the server has signed.

use aws_lc_rs::constant_time;
use http::{HeaderMap, header};
use outbound::webhooks::signature::{
    ID_HEADER, SIGNATURE_HEADER, SignedHeaders, SigningKey, TIMESTAMP_HEADER,
};
use protocol::{Timestamp, model::Secret};

use super::{receiver::Verdict, server_token::ServerKeys};

const TOKEN_HEADER: &str = "x-a2a-notification-token";

/// What deliveries are verified with. Each one that is given has to succeed.
pub(super) struct Checks {
    /// Of the signature.
    pub(super) key: Option<SigningKey>,
    /// Of the webhook.
    pub(super) token: Option<Secret>,
    /// Of the server.
    pub(super) keys: Option<ServerKeys>,
}

impl Checks {
    /// For people, before the first delivery.
    pub(super) fn describe(&self) -> String {
        let given = [
            self.key.as_ref().map(|_| "signature"),
            self.token.as_ref().map(|_| "token"),
            self.keys.as_ref().map(|_| "server token"),
        ];
        let given: Vec<&str> = given.into_iter().flatten().collect();
        match given.as_slice() {
            [] => "they are not verified: give --secret, --token or --jwks".to_owned(),
            given => format!("verified: {}", given.join(", ")),
        }
    }

    /// Verifies a delivery that arrives at this time.
    pub(super) async fn verify(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Verdict {
        let mut passed = Vec::new();
        for checked in [self.signature(headers, body, now), self.token(headers)] {
            match checked {
                Ok(check) => passed.extend(check),
                Err(problem) => return Verdict::NotVerified(problem),
            }
        }
        if let Some(keys) = &self.keys {
            let authorization = text(headers, header::AUTHORIZATION.as_str());
            match keys.verify(authorization, body, now).await {
                Ok(()) => passed.push("jwt"),
                Err(verdict) => return verdict,
            }
        }
        if passed.is_empty() { Verdict::Unchecked } else { Verdict::Verified(passed) }
    }

    fn signature(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<&'static str>, String> {
        // Servers that know nothing of signatures send the token only.
        let of_token = || {
            let is_signed = headers.contains_key(SIGNATURE_HEADER);
            self.token.as_ref().filter(|_| is_signed).and_then(|token| SigningKey::from_token(token.expose()))
        };
        let Some(key) = self.key.clone().or_else(of_token) else { return Ok(None) };
        let need = |name| text(headers, name).ok_or_else(|| format!("the header {name} is missing"));
        let signed = SignedHeaders {
            id: need(ID_HEADER)?,
            timestamp: need(TIMESTAMP_HEADER)?,
            signature: need(SIGNATURE_HEADER)?,
        };
        key.verify(signed, body, now).map_err(|error| error.to_string())?;
        Ok(Some("signature"))
    }

    fn token(&self, headers: &HeaderMap) -> Result<Option<&'static str>, String> {
        let Some(expected) = &self.token else { return Ok(None) };
        let given = headers.get(TOKEN_HEADER).ok_or("the header X-A2A-Notification-Token is missing")?;
        constant_time::verify_slices_are_equal(given.as_bytes(), expected.expose().as_bytes())
            .map_err(|_| "the header X-A2A-Notification-Token has another token")?;
        Ok(Some("token"))
    }
}

/// The value of a header that occurs once.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
