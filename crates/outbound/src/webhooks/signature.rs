//! The signature of a delivery as in the Standard Webhooks specification 1.0: an HMAC-SHA256 over id, time and body. Pure.
//!
//! The time is part of the signature, so that somebody who has recorded a delivery cannot repeat it later; each attempt is
//! signed anew. The id stays the same over all attempts, so that a receiver can ignore duplicates.

use std::fmt::{self, Debug, Formatter};

use aws_lc_rs::{constant_time, hmac, rand};
use base64::{
    Engine as _,
    alphabet::STANDARD as ALPHABET,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use protocol::{Timestamp, model::Secret};

/// The header with the id of a delivery.
pub const ID_HEADER: &str = "webhook-id";
/// The header with the time of an attempt, in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header with the signatures, separated by spaces.
pub const SIGNATURE_HEADER: &str = "webhook-signature";
/// How far the time of an attempt may be from the receiver's, in seconds, in both directions.
pub const TOLERANCE: i64 = 5 * 60;

/// The start of a key in its text form.
const PREFIX: &str = "whsec_";
/// The start of a signature with HMAC-SHA256.
const VERSION: &str = "v1,";
/// The shortest key.
const MIN_LENGTH: usize = 24;
/// The length of a key that is made here.
const RANDOM_LENGTH: usize = 32;
/// The libraries of the specification read keys with and without padding, and ignore bits beyond the last byte.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A key that the server shares with one receiver.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey(Vec<u8>);

/// The three headers of a signed delivery.
#[derive(Clone, Copy, Debug)]
pub struct SignedHeaders<'a> {
    /// [`ID_HEADER`]
    pub id: &'a str,
    /// [`TIMESTAMP_HEADER`]
    pub timestamp: &'a str,
    /// [`SIGNATURE_HEADER`]
    pub signature: &'a str,
}

/// Why a delivery is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The time cannot be read.
    #[error("{TIMESTAMP_HEADER} is not a whole number of seconds since 1970")]
    Timestamp,
    /// The time is too far in the past.
    #[error("{TIMESTAMP_HEADER} is more than 5 minutes ago")]
    TooOld,
    /// The time is too far in the future.
    #[error("{TIMESTAMP_HEADER} is more than 5 minutes in the future")]
    TooNew,
    /// None of the signatures is made with this key over this id, time and body.
    #[error("no signature in {SIGNATURE_HEADER} matches")]
    NoMatch,
}

impl SigningKey {
    /// The key in the notification token of a client: what follows `whsec_` is base64, any other token is the key as it is.
    /// `None` if the key has fewer than 24 bytes or is not base64.
    pub fn from_token(token: &str) -> Option<Self> {
        let key = match token.strip_prefix(PREFIX) {
            Some(encoded) => LENIENT.decode(encoded).ok()?,
            None => token.as_bytes().to_vec(),
        };
        (key.len() >= MIN_LENGTH).then_some(Self(key))
    }

    /// A new key.
    pub fn random() -> Self {
        let mut key = vec![0; RANDOM_LENGTH];
        rand::fill(&mut key).expect("the operating system provides randomness");
        Self(key)
    }

    /// The text form, which the libraries of the specification read: `whsec_` and the key in base64.
    pub fn to_text(&self) -> Secret {
        Secret::new(format!("{PREFIX}{}", STANDARD.encode(&self.0)))
    }

    /// The signature of an attempt, with its version: the value of [`SIGNATURE_HEADER`].
    pub fn sign(&self, id: &str, at: Timestamp, body: &[u8]) -> String {
        let code = self.code(id, &seconds(at).to_string(), body);
        format!("{VERSION}{}", STANDARD.encode(code))
    }

    /// Verifies an attempt that arrives at this time.
    pub fn verify(
        &self,
        headers: SignedHeaders<'_>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), SignatureError> {
        check_time(headers.timestamp, now)?;
        let expected = self.code(headers.id, headers.timestamp, body);
        let signatures = headers.signature.split(' ').filter_map(|signature| signature.strip_prefix(VERSION));
        let mut decoded = signatures.filter_map(|signature| STANDARD.decode(signature).ok());
        let is_valid = decoded
            .any(|signature| constant_time::verify_slices_are_equal(&signature, expected.as_ref()).is_ok());
        if is_valid { Ok(()) } else { Err(SignatureError::NoMatch) }
    }

    fn code(&self, id: &str, timestamp: &str, body: &[u8]) -> hmac::Tag {
        let mut code = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            code.update(part);
        }
        code.sign()
    }
}

impl Debug for SigningKey {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("SigningKey(…)")
    }
}

/// The time as [`TIMESTAMP_HEADER`] has it.
pub fn seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1_000)
}

fn check_time(timestamp: &str, now: Timestamp) -> Result<(), SignatureError> {
    // Other spellings of the same number, such as +1, are not what was signed.
    let is_number = !timestamp.is_empty() && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let sent: i64 = is_number.then(|| timestamp.parse().ok()).flatten().ok_or(SignatureError::Timestamp)?;
    match seconds(now).saturating_sub(sent) {
        age if age > TOLERANCE => Err(SignatureError::TooOld),
        age if age < -TOLERANCE => Err(SignatureError::TooNew),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000 + 999)
    }

    fn key(token: &str) -> SigningKey {
        SigningKey::from_token(token).unwrap()
    }

    #[test]
    fn signatures_are_those_of_the_specifications_libraries() {
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(key(KEY).sign(ID, at(1_614_265_330), BODY), expected);
        let body = br#"{"email":"test@example.com","username":"test_user"}"#;
        let other = key("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
        let signature = other.sign("msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", at(1_649_367_553), body);
        assert_eq!(signature, "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");
    }

    /// Computed with Python's `hmac`.
    #[test]
    fn signatures_are_those_of_python() {
        let vectors: [(&str, &str, i64, &[u8], &str); 4] = [
            (
                "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
                "task-1_config-1_7",
                1_763_452_800,
                br#"{"task":{"id":"task-1"}}"#,
                "pAiR5XOPDZLFJEYBt5C54PQSxKxS5mkVs90RH2sETB8=",
            ),
            (
                "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
                "t",
                0,
                b"",
                "5ekarFXx2u3VJPcK7xcI8zctk8EZHTmMcDTLEITkjh8=",
            ),
            (
                "a plain token of the client",
                "id",
                1_763_452_800,
                "{\"text\":\"Grüße\"}".as_bytes(),
                "5s5q2jdCAo5czE/ULCzWH4TC8XwbvtRxf0MyQbeHs34=",
            ),
            (
                "zwölf Zeichen und mehrere",
                "id",
                4_102_444_800,
                b"\x00\xff\n.",
                "PGGkwcaZOSUXmNGzbOHqoR4TmmjpAJcyIv1felk4tFQ=",
            ),
        ];
        for (token, id, seconds, body, expected) in vectors {
            assert_eq!(key(token).sign(id, at(seconds), body), format!("v1,{expected}"), "{token}");
        }
    }

    #[test]
    fn a_token_is_a_key_if_it_is_long_enough() {
        for token in ["", "short", "12345678901234567890123", "whsec_", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2Laa"]
        {
            assert_eq!(SigningKey::from_token(token), None, "{token}");
        }
        assert_eq!(SigningKey::from_token("whsec_this is not base64, but it is long"), None);
        assert_eq!(key("123456789012345678901234").0, b"123456789012345678901234");
        // 23 characters, 24 bytes.
        assert_eq!(key("zwölf Zeichen oder mehr").0.len(), 24);
        assert_eq!(key(KEY).0.len(), 24);
        let unpadded = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBr");
        assert_eq!(unpadded, key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBr=="));
    }

    #[test]
    fn a_random_key_is_read_back_from_its_text() {
        let made = SigningKey::random();
        assert_eq!(made.0.len(), 32);
        assert_ne!(made, SigningKey::random());
        assert_eq!(key(made.to_text().expose()), made);
        assert_eq!(key(KEY).to_text().expose(), KEY);
        assert_eq!(format!("{made:?}"), "SigningKey(…)");
    }

    fn verify(timestamp: &str, signature: &str, now: i64) -> Result<(), SignatureError> {
        key(KEY).verify(SignedHeaders { id: ID, timestamp, signature }, BODY, at(now))
    }

    #[test]
    fn only_an_unchanged_delivery_is_verified() {
        let sent = 1_614_265_330;
        let good = key(KEY).sign(ID, at(sent), BODY);
        let timestamp = sent.to_string();
        assert_eq!(verify(&timestamp, &good, sent), Ok(()));
        assert_eq!(verify(&timestamp, &format!("v1a,AAAA v1,AAAA {good}"), sent), Ok(()));
        let wrong = [
            "",
            "v1,",
            "v1,####",
            &good[..12],
            &good[3..],
            &good.replace("v1,", "v2,"),
            &good.replace("v1,g", "v1,h"),
            &format!("{good}x"),
        ];
        for signature in wrong {
            assert_eq!(verify(&timestamp, signature, sent), Err(SignatureError::NoMatch), "{signature}");
        }
        assert_eq!(verify(&(sent + 1).to_string(), &good, sent), Err(SignatureError::NoMatch));
        let headers = SignedHeaders { id: ID, timestamp: &timestamp, signature: &good };
        assert_eq!(key(KEY).verify(headers, b"{}", at(sent)), Err(SignatureError::NoMatch));
        assert_eq!(SigningKey::random().verify(headers, BODY, at(sent)), Err(SignatureError::NoMatch));
        let other_id = SignedHeaders { id: "msg", ..headers };
        assert_eq!(key(KEY).verify(other_id, BODY, at(sent)), Err(SignatureError::NoMatch));
    }

    #[test]
    fn an_attempt_is_valid_for_five_minutes() {
        let sent = 1_614_265_330;
        let good = key(KEY).sign(ID, at(sent), BODY);
        let timestamp = sent.to_string();
        for now in [sent - 300, sent + 300] {
            assert_eq!(verify(&timestamp, &good, now), Ok(()));
        }
        assert_eq!(verify(&timestamp, &good, sent + 301), Err(SignatureError::TooOld));
        assert_eq!(verify(&timestamp, &good, sent - 301), Err(SignatureError::TooNew));
        for timestamp in ["", "now", "+1614265330", "-1", "1614265330.5", "99999999999999999999"] {
            assert_eq!(verify(timestamp, &good, sent), Err(SignatureError::Timestamp), "{timestamp}");
        }
    }
}
