//! The three parts of a token (RFC 7515), and its header. Pure.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use protocol::json::Raw;

use super::{Problem, members, problem};

/// The longest token.
const MAX_TOKEN_BYTES: usize = 8 << 10;

/// A token, split at its dots. Only the signature has been decoded.
pub(super) struct Jws<'a> {
    pub(super) token: &'a str,
    /// What is signed: the first two parts with the dot between them.
    pub(super) signed: &'a [u8],
    pub(super) signature: Vec<u8>,
    header: &'a str,
    claims: &'a str,
}

/// The header of a token, as far as it is used. Addresses and keys in it (`jku`, `x5u`, `jwk`, `x5c`) are ignored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) algorithm: Algorithm,
    /// `kid`: compared with the ids of keys, and used for nothing else.
    pub(super) key_id: Option<String>,
}

/// How a token is signed. `none` is not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// HS256.
    SharedSecret,
    PublicKey(PublicKeyAlgorithm),
}

/// The algorithms of public keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublicKeyAlgorithm {
    Rs256,
    Ps256,
    Es256,
    Es384,
    EdDsa,
}

impl PublicKeyAlgorithm {
    /// The algorithm with this name (RFC 7518, RFC 8037).
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            "ES384" => Some(Self::Es384),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

impl Algorithm {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "HS256" => Some(Self::SharedSecret),
            name => PublicKeyAlgorithm::from_name(name).map(Self::PublicKey),
        }
    }
}

impl<'a> Jws<'a> {
    pub(super) fn split(token: &'a str) -> Result<Self, Problem> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(problem::TOO_LONG);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(problem::NOT_A_TOKEN)?;
        let (header, claims) = signed.split_once('.').ok_or(problem::NOT_A_TOKEN)?;
        let signature = decode(signature)?;
        Ok(Self { token, signed: signed.as_bytes(), signature, header, claims })
    }

    pub(super) fn header(&self) -> Result<Header, Problem> {
        Header::read(&decode(self.header)?)
    }

    /// The text of the claims.
    pub(super) fn claims(&self) -> Result<Vec<u8>, Problem> {
        decode(self.claims)
    }
}

impl Header {
    fn read(document: &[u8]) -> Result<Self, Problem> {
        let text = |value| members::text(value).ok_or(problem::HEADER);
        let (mut algorithm, mut key_id) = (None, None);
        members::read(document, problem::HEADER, |name, value| {
            match name {
                "alg" => algorithm = Algorithm::from_name(&text(value)?),
                "kid" => key_id = Some(text(value)?.into_owned()),
                "typ" => check_type(value)?,
                "crit" => return Err(problem::CRITICAL),
                _ => {}
            }
            Ok(())
        })?;
        Ok(Self { algorithm: algorithm.ok_or(problem::ALGORITHM)?, key_id })
    }
}

fn check_type(value: Raw<'_>) -> Result<(), Problem> {
    let known = |text: Cow<'_, str>| ["JWT", "at+jwt"].iter().any(|known| text.eq_ignore_ascii_case(known));
    if members::text(value).is_some_and(known) { Ok(()) } else { Err(problem::TYPE) }
}

/// Decodes a part: base64url without padding, white space or unused bits, so that each has one spelling.
fn decode(part: &str) -> Result<Vec<u8>, Problem> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| problem::NOT_A_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Result<Header, Problem> {
        Header::read(text.as_bytes())
    }

    #[test]
    fn type_and_key_id_are_optional_and_unknown_members_ignored() {
        let expected =
            |algorithm, key_id: Option<&str>| Ok(Header { algorithm, key_id: key_id.map(str::to_owned) });
        let es256 = Algorithm::PublicKey(PublicKeyAlgorithm::Es256);
        assert_eq!(header(r#"{"alg":"HS256"}"#), expected(Algorithm::SharedSecret, None));
        assert_eq!(header(r#"{"typ":"jwt","alg":"ES256","kid":"\u0061"}"#), expected(es256, Some("a")));
        assert_eq!(
            header(r#"{"alg":"ES256","typ":"AT+JWT","jku":"http://x","x":[1]}"#),
            expected(es256, None)
        );
    }
}
