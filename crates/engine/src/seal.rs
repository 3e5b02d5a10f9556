//! Encrypts secrets that the store keeps, so that a copy of the database file alone does not reveal them.
//!
//! A sealed value is a version byte, a random nonce of 96 bits, and the output of AES-256-GCM. The associated data is
//! authenticated and not stored: a value that somebody moves to another row does not open there. Random nonces are safe for
//! 2³² values of one key, which is far more than a store has secrets.

use std::fmt::{self, Debug, Formatter};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use protocol::model::Secret;

/// The first byte of every value, to tell the form of later versions.
const VERSION: u8 = 1;
const TAG_LENGTH: usize = 16;
/// The start of a key in its text form.
const PREFIX: &str = "a2ad_seal_";

/// Seals and opens secrets with one key.
pub struct Sealer(RandomizedNonceKey);

impl Sealer {
    /// The length of a key in bytes.
    pub const KEY_LENGTH: usize = 32;

    /// Uses this key.
    pub fn new(key: [u8; Self::KEY_LENGTH]) -> Self {
        Self(RandomizedNonceKey::new(&AES_256_GCM, &key).expect("a key of AES-256 has 32 bytes"))
    }

    /// The text form of a new key, for a file.
    pub fn new_key_text() -> Secret {
        let mut key = [0; Self::KEY_LENGTH];
        getrandom::fill(&mut key).expect("the operating system provides randomness");
        Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(key)))
    }

    /// Uses the key with this text form; `None` if the text is not such a key.
    pub fn from_key_text(text: &str) -> Option<Self> {
        let key = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        Some(Self::new(key.try_into().ok()?))
    }

    /// Encrypts a secret; it opens only with the same associated data.
    pub fn seal(&self, plaintext: &[u8], associated_data: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(plaintext.len() + TAG_LENGTH);
        text.extend_from_slice(plaintext);
        let nonce = self.0.seal_in_place_append_tag(Aad::from(associated_data), &mut text);
        let nonce = nonce.expect("a value in memory is shorter than the limit of 64 GiB");
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + text.len());
        sealed.push(VERSION);
        sealed.extend_from_slice(nonce.as_ref());
        sealed.extend_from_slice(&text);
        sealed
    }

    /// Decrypts a value. `None` if it was sealed with another key or other associated data, or has been changed.
    pub fn open(&self, sealed: &[u8], associated_data: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.strip_prefix(&[VERSION])?.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.open_in_place(nonce, Aad::from(associated_data), &mut text).ok()?.len();
        text.truncate(opened);
        Some(text)
    }
}

impl Debug for Sealer {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("Sealer(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    #[test]
    fn a_secret_opens_with_its_key_and_its_associated_data() {
        let sealer = Sealer::new(KEY);
        for secret in [&b""[..], b"s", b"a secret of the client", &[0; 5_000]] {
            let sealed = sealer.seal(secret, b"task 1, config 2");
            assert_eq!(sealed.len(), 1 + 12 + secret.len() + 16);
            assert_eq!(Sealer::new(KEY).open(&sealed, b"task 1, config 2").unwrap(), secret);
            assert_eq!(sealer.open(&sealed, b"task 1, config 3"), None);
            assert_eq!(Sealer::new([8; 32]).open(&sealed, b"task 1, config 2"), None);
        }
    }

    #[test]
    fn a_key_has_a_text_form() {
        let text = Sealer::new_key_text();
        let sealed = Sealer::from_key_text(text.expose()).unwrap().seal(b"secret", b"");
        assert_eq!(Sealer::from_key_text(text.expose()).unwrap().open(&sealed, b"").unwrap(), b"secret");
        assert_eq!(Sealer::from_key_text(Sealer::new_key_text().expose()).unwrap().open(&sealed, b""), None);
        let cut = &text.expose()[..text.expose().len() - 1];
        for other in ["", "a2ad_seal_", cut, &text.expose()["a2ad_seal_".len()..], "a2ad_seal_AAAA"] {
            assert!(Sealer::from_key_text(other).is_none(), "{other}");
        }
    }

    #[test]
    fn the_same_secret_is_sealed_differently_each_time() {
        let sealer = Sealer::new(KEY);
        assert_ne!(sealer.seal(b"secret", b""), sealer.seal(b"secret", b""));
    }

    #[test]
    fn a_changed_value_does_not_open() {
        let sealer = Sealer::new(KEY);
        let sealed = sealer.seal(b"secret", b"");
        for position in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[position] ^= 1;
            assert_eq!(sealer.open(&changed, b""), None, "byte {position}");
            assert_eq!(sealer.open(&sealed[..position], b""), None, "length {position}");
        }
        assert_eq!(sealer.open(&[&sealed[..], b"x"].concat(), b""), None);
    }

    /// Computed with the Python package `cryptography`.
    #[test]
    fn the_form_is_that_of_aes_256_gcm() {
        let sealed = "01000102030405060708090a0b79a19a157e7bbc3d57dd83bc963009da8250dfeb7616277bf8b920ce6a392e6c57bf6368c3e1";
        let bytes: Vec<u8> = (0..sealed.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&sealed[at..at + 2], 16).unwrap())
            .collect();
        assert_eq!(Sealer::new(KEY).open(&bytes, b"task 1").unwrap(), b"a secret of the client");
    }
}
