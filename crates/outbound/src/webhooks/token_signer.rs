//! The token that proves to a receiver which server has sent a delivery: a JSON Web Token (RFC 7519) with RS256.
//!
//! Receivers of the first A2A samples expect its form: the claims `iat` and `request_body_sha256`, the SHA-256 digest of the
//! body in hexadecimal, and nothing else. They compute the digest of the JSON that they have parsed and written again without
//! white space, so the body has to be compact JSON. The public key is published as a JSON Web Key Set (RFC 7517).

use std::fmt::{self, Debug, Formatter};

use aws_lc_rs::{
    digest::{SHA256, digest},
    encoding::AsDer as _,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use protocol::{Timestamp, model::Secret};

use super::{pem, signature::seconds};

/// Signs deliveries with the key pair of the server.
pub struct PushSigner {
    key: RsaKeyPair,
    /// The header of every token, encoded, and the dot behind it.
    header: String,
    jwks: String,
}

/// The document is not an RSA key of at least 2048 bits in PKCS #8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an RSA private key of 2048 to 8192 bits in PKCS #8")]
pub struct InvalidKey;

impl PushSigner {
    /// Makes a key pair of 2048 bits, in PKCS #8 (DER). Takes 50 to 200 ms of computation.
    pub fn generate() -> Vec<u8> {
        let key = RsaKeyPair::generate(KeySize::Rsa2048).expect("there is memory and randomness for a key");
        let document = key.as_der().expect("a key that was generated can be encoded");
        document.as_ref().to_vec()
    }

    /// Signs with this key pair.
    pub fn from_pkcs8(document: &[u8]) -> Result<Self, InvalidKey> {
        let key = RsaKeyPair::from_pkcs8(document).map_err(|_| InvalidKey)?;
        let public = PublicNumbers::read(key.public_key().as_ref()).ok_or(InvalidKey)?;
        let id = public.thumbprint();
        let header = encode(format!(r#"{{"alg":"RS256","kid":"{id}","typ":"JWT"}}"#).as_bytes()) + ".";
        let jwks = public.jwks(&id);
        Ok(Self { key, header, jwks })
    }

    /// The same with a PEM document (RFC 7468).
    pub fn from_pem(document: &str) -> Result<Self, InvalidKey> {
        Self::from_pkcs8(&pem::decode(document).ok_or(InvalidKey)?)
    }

    /// The PEM document of a new key pair.
    pub fn generate_pem() -> Secret {
        Secret::new(pem::encode(&Self::generate()))
    }

    /// The token for this body: what follows `Bearer ` in the header `Authorization`.
    pub fn sign(&self, body: &[u8], now: Timestamp) -> String {
        let digest = hexadecimal(digest(&SHA256, body).as_ref());
        let claims = format!(r#"{{"iat":{},"request_body_sha256":"{digest}"}}"#, seconds(now));
        let mut token = self.header.clone();
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let mut signature = vec![0; self.key.public_modulus_len()];
        self.key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), token.as_bytes(), &mut signature)
            .expect("a key of at least 2048 bits can sign a SHA-256 digest");
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        token
    }

    /// The document with the public key, for receivers.
    pub fn jwks(&self) -> &str {
        &self.jwks
    }
}

impl Debug for PushSigner {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "PushSigner({})", self.jwks)
    }
}

/// A public RSA key as JSON Web Keys have it: modulus and exponent in base64url.
struct PublicNumbers {
    modulus: String,
    exponent: String,
}

impl PublicNumbers {
    /// Reads the structure `RSAPublicKey` of PKCS #1: a sequence of two integers.
    fn read(der: &[u8]) -> Option<Self> {
        let (sequence, _) = element(der, 0x30)?;
        let (modulus, rest) = element(sequence, 0x02)?;
        let (exponent, _) = element(rest, 0x02)?;
        Some(Self { modulus: number(modulus), exponent: number(exponent) })
    }

    /// The id of the key: RFC 7638.
    fn thumbprint(&self) -> String {
        let required = format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, self.exponent, self.modulus);
        encode(digest(&SHA256, required.as_bytes()).as_ref())
    }

    fn jwks(&self, id: &str) -> String {
        let Self { modulus, exponent } = self;
        let key =
            format!(r#""kty":"RSA","kid":"{id}","use":"sig","alg":"RS256","n":"{modulus}","e":"{exponent}""#);
        format!(r#"{{"keys":[{{{key}}}]}}"#)
    }
}

/// The content of the DER element with this tag at the start, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let rest = der.strip_prefix(&[tag])?;
    let (length, rest) = match rest {
        [length @ ..=0x7f, rest @ ..] => (usize::from(*length), rest),
        [0x81, length, rest @ ..] => (usize::from(*length), rest),
        [0x82, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// Without the zero byte that makes it positive in DER.
fn number(integer: &[u8]) -> String {
    encode(integer.strip_prefix(&[0]).unwrap_or(integer))
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};

    use super::*;

    fn decode(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    fn text_between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
        text.split_once(start).unwrap().1.split_once(end).unwrap().0
    }

    #[test]
    fn a_token_is_verified_with_the_published_key() {
        let signer = PushSigner::from_pkcs8(&PushSigner::generate()).unwrap();
        let body = br#"{"id":"task-1"}"#;
        let token = signer.sign(body, Timestamp::from_millis(1_763_452_800_999));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let jwks = signer.jwks();
        let id = text_between(jwks, r#""kid":""#, "\"");
        assert_eq!(decode(header), format!(r#"{{"alg":"RS256","kid":"{id}","typ":"JWT"}}"#).into_bytes());
        // printf '{"id":"task-1"}' | sha256sum
        let digest = "beab373b6d8385d578369fa14568feb11fd350b26296c673bb82ee01c4e542e2";
        let expected = format!(r#"{{"iat":1763452800,"request_body_sha256":"{digest}"}}"#);
        assert_eq!(String::from_utf8(decode(claims)).unwrap(), expected);
        let (n, e) = (text_between(jwks, r#""n":""#, "\""), text_between(jwks, r#""e":""#, "\""));
        assert_eq!((decode(n).len(), e), (256, "AQAB"));
        let public = RsaPublicKeyComponents { n: decode(n), e: decode(e) };
        public.verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &decode(signature)).unwrap();
        public.verify(&RSA_PKCS1_2048_8192_SHA256, header.as_bytes(), &decode(signature)).unwrap_err();
    }

    /// The example of RFC 7638, section 3.1.
    #[test]
    fn the_id_of_a_key_is_its_thumbprint() {
        let modulus = concat!(
            "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3okn",
            "jhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qM",
            "QvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJ",
            "zKnqDKgw",
        );
        let public = PublicNumbers { modulus: modulus.into(), exponent: "AQAB".into() };
        assert_eq!(public.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    #[test]
    fn the_same_key_has_the_same_document() {
        let document = PushSigner::generate();
        let [first, second] =
            [&document, &document].map(|document| PushSigner::from_pkcs8(document).unwrap());
        assert_eq!(first.jwks(), second.jwks());
        assert_ne!(first.jwks(), PushSigner::from_pkcs8(&PushSigner::generate()).unwrap().jwks());
    }

    #[test]
    fn a_key_is_read_back_from_its_document() {
        let document = PushSigner::generate_pem();
        let first = PushSigner::from_pem(document.expose()).unwrap();
        assert!(
            document.expose().lines().all(|line| line.len() <= 64),
            "{}",
            document.expose().lines().count()
        );
        let other_ends = document.expose().replace('\n', "\r\n") + "\r\n";
        assert_eq!(PushSigner::from_pem(&other_ends).unwrap().jwks(), first.jwks());
        let public = document.expose().replace("PRIVATE", "PUBLIC");
        for text in ["", &document.expose()[30..], &document.expose().replace("END", "NED"), &public] {
            assert_eq!(PushSigner::from_pem(text).unwrap_err(), InvalidKey, "{}", text.len());
        }
    }

    #[test]
    fn other_bytes_are_no_key() {
        let mut document = PushSigner::generate();
        document.truncate(document.len() - 1);
        for bytes in [&document[..], b"", b"-----BEGIN PRIVATE KEY-----"] {
            assert_eq!(PushSigner::from_pkcs8(bytes).unwrap_err(), InvalidKey);
        }
    }
}
