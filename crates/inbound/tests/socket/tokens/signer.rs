//! Makes tokens and the documents with their keys.

use aws_lc_rs::{
    hmac,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
        KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
    },
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// A key with the algorithm that it is used for.
pub(crate) struct Signer {
    /// `alg`
    pub(crate) algorithm: &'static str,
    /// `kid`
    pub(crate) id: String,
    key: Key,
}

enum Key {
    Secret(Box<hmac::Key>),
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    pub(crate) fn hs256(secret: &[u8]) -> Self {
        Self::new("HS256", Key::Secret(Box::new(hmac::Key::new(hmac::HMAC_SHA256, secret))))
    }

    pub(crate) fn rs256() -> Self {
        Self::new("RS256", Key::Rsa(RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap()))
    }

    pub(crate) fn ps256() -> Self {
        Self { algorithm: "PS256", id: "PS256".into(), ..Self::rs256() }
    }

    pub(crate) fn es256() -> Self {
        Self::new("ES256", Key::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()))
    }

    pub(crate) fn es384() -> Self {
        Self::new("ES384", Key::Ec(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap()))
    }

    pub(crate) fn eddsa() -> Self {
        Self::new("EdDSA", Key::Ed25519(Ed25519KeyPair::generate().unwrap()))
    }

    fn new(algorithm: &'static str, key: Key) -> Self {
        Self { algorithm, id: algorithm.into(), key }
    }

    /// The same key with another id.
    pub(crate) fn named(self, id: &str) -> Self {
        Self { id: id.into(), ..self }
    }

    /// A token with these claims.
    pub(crate) fn token(&self, claims: &str) -> String {
        let header = match self.key {
            Key::Secret(_) => r#"{"alg":"HS256","typ":"JWT"}"#.to_owned(),
            _ => format!(r#"{{"alg":"{}","typ":"JWT","kid":"{}"}}"#, self.algorithm, self.id),
        };
        self.token_with(&header, claims)
    }

    /// A token with any header.
    pub(crate) fn token_with(&self, header: &str, claims: &str) -> String {
        self.token_of(header.as_bytes(), claims.as_bytes())
    }

    /// A token with any bytes as header and claims.
    pub(crate) fn token_of(&self, header: &[u8], claims: &[u8]) -> String {
        let signed = format!("{}.{}", encode(header), encode(claims));
        format!("{signed}.{}", encode(&self.sign(signed.as_bytes())))
    }

    /// The signature of any bytes.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        match &self.key {
            Key::Secret(key) => hmac::sign(key, message).as_ref().to_vec(),
            Key::Rsa(key) => {
                let padding: &'static dyn aws_lc_rs::signature::RsaEncoding =
                    if self.algorithm == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(padding, &SystemRandom::new(), message, &mut signature).unwrap();
                signature
            }
            Key::Ec(key) => key.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            Key::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }

    /// The public key as the library writes it: PKCS #1 for RSA, a point for the others.
    pub(crate) fn public_key(&self) -> Vec<u8> {
        match &self.key {
            Key::Secret(_) => panic!("a secret has no public key"),
            Key::Rsa(key) => key.public_key().as_ref().to_vec(),
            Key::Ec(key) => key.public_key().as_ref().to_vec(),
            Key::Ed25519(key) => key.public_key().as_ref().to_vec(),
        }
    }

    /// The public key as a JSON Web Key; `more` follows its members.
    pub(crate) fn jwk(&self, more: &str) -> String {
        let public = self.public_key();
        let members = match &self.key {
            Key::Secret(_) => unreachable!(),
            Key::Rsa(_) => {
                let (n, e) = rsa_numbers(&public);
                format!(r#""kty":"RSA","n":"{}","e":"{}""#, encode(n), encode(e))
            }
            Key::Ec(_) => {
                // The byte before the coordinates is the form of the point.
                let (x, y) = public[1..].split_at(public.len() / 2);
                let curve = if x.len() == 32 { "P-256" } else { "P-384" };
                format!(r#""kty":"EC","crv":"{curve}","x":"{}","y":"{}""#, encode(x), encode(y))
            }
            Key::Ed25519(_) => format!(r#""kty":"OKP","crv":"Ed25519","x":"{}""#, encode(&public)),
        };
        format!(r#"{{"kid":"{}",{members}{more}}}"#, self.id)
    }
}

/// A document with the keys of these signers.
pub(crate) fn jwks(signers: &[&Signer]) -> String {
    let keys: Vec<String> = signers.iter().map(|signer| signer.jwk("")).collect();
    jwks_of(&keys)
}

/// A document with these keys.
pub(crate) fn jwks_of(keys: &[String]) -> String {
    format!(r#"{{"keys":[{}]}}"#, keys.join(","))
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// Modulus and exponent of a key in PKCS #1: a sequence of two integers.
fn rsa_numbers(der: &[u8]) -> (&[u8], &[u8]) {
    fn value(der: &[u8]) -> (&[u8], &[u8]) {
        let (start, length) = match der[1] {
            short @ 0..=0x7f => (2, usize::from(short)),
            0x81 => (3, usize::from(der[2])),
            0x82 => (4, usize::from(der[2]) << 8 | usize::from(der[3])),
            other => panic!("length {other:x}"),
        };
        der[start..].split_at(length)
    }
    let (modulus, rest) = value(value(der).0);
    let (exponent, _) = value(rest);
    // Without the zero byte that makes it positive.
    (&modulus[1..], exponent)
}
