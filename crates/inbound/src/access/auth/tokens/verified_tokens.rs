//! Tokens that were verified shortly before, by their digest: a repeated token costs a hash instead of a signature.

use std::{collections::HashMap, mem, time::Duration};

use tokio::time::Instant;

use super::{Subject, claims::Lifetime};

/// How long a token is kept.
const KEPT: Duration = Duration::from_secs(5 * 60);
/// The most tokens of a generation. There are two of them: when the younger one is full, the older one is dropped.
const MAX_TOKENS: usize = 2_048;

/// SHA-256 of a token.
pub(super) type TokenDigest = [u8; 32];

/// Verified tokens, at most twice [`MAX_TOKENS`].
#[derive(Default)]
pub(super) struct VerifiedTokens {
    younger: HashMap<TokenDigest, VerifiedToken>,
    older: HashMap<TokenDigest, VerifiedToken>,
}

/// What was found out about a token. It holds as long as the token is valid and the keys of its issuer are the same.
#[derive(Clone)]
pub(super) struct VerifiedToken {
    pub(super) subject: Subject,
    pub(super) lifetime: Lifetime,
    /// The place of its issuer in the list of issuers.
    pub(super) issuer: usize,
    /// That of the issuer's keys.
    pub(super) generation: u64,
    pub(super) verified_at: Instant,
}

impl VerifiedTokens {
    pub(super) fn find(&mut self, digest: &TokenDigest, now: Instant) -> Option<VerifiedToken> {
        let found = match self.younger.get(digest) {
            Some(found) => found.clone(),
            None => {
                let found = self.older.remove(digest)?;
                self.insert(*digest, found.clone());
                found
            }
        };
        (now < found.verified_at + KEPT).then_some(found)
    }

    pub(super) fn insert(&mut self, digest: TokenDigest, token: VerifiedToken) {
        if self.younger.len() >= MAX_TOKENS && !self.younger.contains_key(&digest) {
            self.older = mem::take(&mut self.younger);
        }
        self.younger.insert(digest, token);
    }
}

#[cfg(test)]
mod tests {
    use engine::AuthMethod;

    use super::*;
    use crate::access::auth::tokens::claims::Claims;

    fn digest(number: usize) -> TokenDigest {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&number.to_le_bytes());
        digest
    }

    fn token(verified_at: Instant) -> VerifiedToken {
        let lifetime = Claims::read(br#"{"exp":1}"#).unwrap().lifetime;
        let subject = Subject::new(AuthMethod::Oidc, "https://id.example", "x", lifetime);
        VerifiedToken { subject, lifetime, issuer: 0, generation: 0, verified_at }
    }

    #[test]
    fn tokens_in_use_are_kept_and_their_number_is_bounded() {
        let (mut tokens, now) = (VerifiedTokens::default(), Instant::now());
        for number in 0..10 * MAX_TOKENS {
            tokens.insert(digest(number), token(now));
            assert!(tokens.find(&digest(0), now).is_some(), "in use");
        }
        assert!(tokens.younger.len() <= MAX_TOKENS && tokens.older.len() <= MAX_TOKENS);
        assert!(tokens.find(&digest(1), now).is_none());
    }

    #[test]
    fn tokens_are_kept_for_five_minutes() {
        let (mut tokens, now) = (VerifiedTokens::default(), Instant::now());
        tokens.insert(digest(1), token(now));
        assert!(tokens.find(&digest(1), now + Duration::from_secs(299)).is_some());
        assert!(tokens.find(&digest(1), now + Duration::from_secs(300)).is_none());
    }
}
