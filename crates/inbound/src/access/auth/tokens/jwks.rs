//! The public keys of an issuer (RFC 7517). Pure.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents, VerificationAlgorithm,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use protocol::json::Raw;

use super::{
    jws::{Jws, PublicKeyAlgorithm},
    members,
};

/// The most keys of an issuer.
const MAX_KEYS: usize = 100;
/// How many keys are tried for a token, which bounds the cost of one that does not name its key.
const MAX_TRIES: usize = 8;
/// The smallest RSA key.
const MIN_RSA_BITS: usize = 2_048;

/// The keys of an issuer that can verify tokens.
pub(super) struct KeySet {
    keys: Vec<PublicKey>,
    /// Keys of the document that cannot be used.
    pub(super) skipped: usize,
}

struct PublicKey {
    id: Option<String>,
    /// With each algorithm that it may be used for.
    verifiers: Vec<(PublicKeyAlgorithm, ParsedPublicKey)>,
}

/// The result of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignatureVerdict {
    Valid,
    NotValid,
    /// There is no key with the id that the token names.
    UnknownKey,
}

impl KeySet {
    /// Reads a document. Keys that cannot be used are skipped; an error is for the log.
    pub(super) fn read(document: &[u8]) -> Result<Self, &'static str> {
        let malformed = "the document with keys is not a JSON object with a list of at most 100 keys";
        let mut listed = None;
        members::read(document, malformed, |name, value| {
            if name == "keys" {
                listed = members::list(value, MAX_KEYS);
            }
            Ok(())
        })?;
        let listed = listed.ok_or(malformed)?;
        let keys: Vec<_> = listed.iter().filter_map(|value| PublicKey::read(*value)).collect();
        Ok(Self { skipped: listed.len() - keys.len(), keys })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Verifies the signature of a token with the key that it names, or with each key for its algorithm.
    pub(super) fn verify(
        &self,
        jws: &Jws<'_>,
        algorithm: PublicKeyAlgorithm,
        key_id: Option<&str>,
    ) -> SignatureVerdict {
        let is_named = |key: &&PublicKey| key_id.is_none() || key.id.as_deref() == key_id;
        if key_id.is_some() && !self.keys.iter().any(|key| is_named(&key)) {
            return SignatureVerdict::UnknownKey;
        }
        let verifiers = self.keys.iter().filter(is_named).flat_map(|key| &key.verifiers);
        let mut verifiers = verifiers.filter(|(own, _)| *own == algorithm).take(MAX_TRIES);
        let is_valid = verifiers.any(|(_, key)| key.verify_sig(jws.signed, &jws.signature).is_ok());
        if is_valid { SignatureVerdict::Valid } else { SignatureVerdict::NotValid }
    }
}

impl PublicKey {
    /// Reads a key; `None` if it is not a public key for signatures of a supported kind.
    fn read(value: Raw<'_>) -> Option<Self> {
        let key = Members::read(value)?;
        if key.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        let only = match &key.algorithm {
            Some(name) => Some(PublicKeyAlgorithm::from_name(name)?),
            None => None,
        };
        let mut verifiers = key.verifiers()?;
        verifiers.retain(|(algorithm, _)| only.is_none_or(|only| only == *algorithm));
        if verifiers.is_empty() { None } else { Some(Self { id: key.id, verifiers }) }
    }
}

/// The members of a key.
#[derive(Default)]
struct Members {
    kind: Option<String>,
    curve: Option<String>,
    id: Option<String>,
    usage: Option<String>,
    algorithm: Option<String>,
    x: Option<Vec<u8>>,
    y: Option<Vec<u8>>,
    modulus: Option<Vec<u8>>,
    exponent: Option<Vec<u8>>,
}

/// The key cannot be used.
struct UnusableKey;

impl Members {
    fn read(value: Raw<'_>) -> Option<Self> {
        let mut key = Self::default();
        let text = |value| members::text(value).ok_or(UnusableKey);
        let bytes = |value| URL_SAFE_NO_PAD.decode(text(value)?.as_bytes()).map_err(|_| UnusableKey);
        let read = members::read_raw(value, UnusableKey, |name, value| {
            match name {
                "kty" => key.kind = Some(text(value)?.into_owned()),
                "crv" => key.curve = Some(text(value)?.into_owned()),
                "kid" => key.id = Some(text(value)?.into_owned()),
                "use" => key.usage = Some(text(value)?.into_owned()),
                "alg" => key.algorithm = Some(text(value)?.into_owned()),
                "key_ops" if !permits_verification(value) => return Err(UnusableKey),
                "x" => key.x = Some(bytes(value)?),
                "y" => key.y = Some(bytes(value)?),
                "n" => key.modulus = Some(bytes(value)?),
                "e" => key.exponent = Some(bytes(value)?),
                // Secret members: whoever has the document can sign.
                "d" | "p" | "q" | "dp" | "dq" | "qi" | "oth" | "k" => return Err(UnusableKey),
                _ => {}
            }
            Ok(())
        });
        read.is_ok().then_some(key)
    }

    /// The key with each algorithm that its kind is for.
    fn verifiers(&self) -> Option<Vec<(PublicKeyAlgorithm, ParsedPublicKey)>> {
        use PublicKeyAlgorithm::{EdDsa, Es256, Es384, Ps256, Rs256};
        match (self.kind.as_deref()?, self.curve.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (without_zeros(self.modulus.as_ref()?), without_zeros(self.exponent.as_ref()?));
                if bits(n) < MIN_RSA_BITS {
                    return None;
                }
                let key = RsaPublicKeyComponents { n, e };
                Some(vec![
                    (Rs256, key.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256).ok()?),
                    (Ps256, key.to_parsed_public_key(&RSA_PSS_2048_8192_SHA256).ok()?),
                ])
            }
            ("EC", Some("P-256")) => Some(vec![(Es256, self.point(32, &ECDSA_P256_SHA256_FIXED)?)]),
            ("EC", Some("P-384")) => Some(vec![(Es384, self.point(48, &ECDSA_P384_SHA384_FIXED)?)]),
            ("OKP", Some("Ed25519")) => {
                let x = self.x.as_ref().filter(|x| x.len() == 32)?;
                Some(vec![(EdDsa, ParsedPublicKey::new(&ED25519, x).ok()?)])
            }
            _ => None,
        }
    }

    /// A point of a curve whose coordinates have so many bytes.
    fn point(&self, length: usize, algorithm: &'static dyn VerificationAlgorithm) -> Option<ParsedPublicKey> {
        let (x, y) = (self.x.as_ref()?, self.y.as_ref()?);
        if x.len() != length || y.len() != length {
            return None;
        }
        // The uncompressed form of SEC 1.
        let point = [&[4], x.as_slice(), y].concat();
        ParsedPublicKey::new(algorithm, point).ok()
    }
}

fn permits_verification(operations: Raw<'_>) -> bool {
    let operations = members::list(operations, MAX_KEYS).unwrap_or_default();
    operations.into_iter().any(|operation| members::text(operation).as_deref() == Some("verify"))
}

/// Some libraries write a number with a zero byte for its sign.
fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

fn bits(number: &[u8]) -> usize {
    number.len() * 8 - number.first().map_or(0, |first| first.leading_zeros() as usize)
}
