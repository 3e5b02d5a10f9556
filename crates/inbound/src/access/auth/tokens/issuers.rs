//! Tokens of the configured issuers, which sign with keys of their own.

use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use engine::AuthMethod;
use protocol::Timestamp;
use tokio::time::Instant;

use super::{
    MissingKeys, Problem, Subject, TokenError,
    claims::Claims,
    issuer_keys::IssuerKeys,
    jwks::SignatureVerdict,
    jws::{Header, Jws, PublicKeyAlgorithm},
    key_documents::KeySource,
    problem,
    verified_tokens::{TokenDigest, VerifiedToken, VerifiedTokens},
};
use crate::access::auth::{AuthOptions, Effort};

/// The issuers, and the tokens of theirs that were verified before.
pub(super) struct Issuers {
    issuers: Vec<KnownIssuer>,
    verified: Mutex<VerifiedTokens>,
}

struct KnownIssuer {
    /// The value of `iss`.
    name: String,
    audience: String,
    keys: Arc<IssuerKeys>,
}

impl Issuers {
    pub(super) fn new(options: &AuthOptions) -> Self {
        let issuers = options.fetch.iter().flat_map(|fetch| {
            options.issuers.iter().map(|issuer| KnownIssuer {
                name: issuer.issuer.clone(),
                audience: issuer.audience.clone(),
                keys: Arc::new(IssuerKeys::new(KeySource::new(issuer.clone(), Arc::clone(fetch)))),
            })
        });
        Self { issuers: issuers.collect(), verified: Mutex::default() }
    }

    pub(super) fn verify(
        &self,
        jws: &Jws<'_>,
        header: &Header,
        algorithm: PublicKeyAlgorithm,
        effort: Effort,
        now: Timestamp,
    ) -> Result<Subject, TokenError> {
        if self.issuers.is_empty() {
            return Err(problem::NO_ISSUERS.into());
        }
        let digest = sha256(jws.token);
        if let Some(subject) = self.verified_before(&digest, now) {
            return Ok(subject);
        }
        let claims = jws.claims()?;
        let claims = Claims::read(&claims)?;
        let name = claims.issuer.as_deref().ok_or(problem::NO_ISSUER)?;
        let place = self.issuers.iter().position(|issuer| issuer.name == name).ok_or(problem::ISSUER)?;
        let issuer = &self.issuers[place];
        if effort == Effort::Cheap {
            return Err(TokenError::NotCheap);
        }
        let generation = issuer.check_signature(jws, algorithm, header.key_id.as_deref())?;
        let subject = issuer.check_claims(&claims, now)?;
        let token = VerifiedToken {
            subject: subject.clone(),
            lifetime: claims.lifetime,
            issuer: place,
            generation,
            verified_at: Instant::now(),
        };
        self.verified.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, token);
        Ok(subject)
    }

    /// Whether there is an issuer with this name.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.issuers.iter().any(|issuer| issuer.name == name)
    }

    /// The subject of a token that was verified before with the keys in use, and is valid now.
    fn verified_before(&self, digest: &TokenDigest, now: Timestamp) -> Option<Subject> {
        let found = {
            let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
            verified.find(digest, Instant::now())?
        };
        let generation = self.issuers[found.issuer].keys.generation();
        let is_valid = generation == Some(found.generation) && found.lifetime.check(now).is_ok();
        is_valid.then_some(found.subject)
    }
}

impl KnownIssuer {
    /// Checks the signature of a token; returns the generation of the keys it was checked with.
    fn check_signature(
        &self,
        jws: &Jws<'_>,
        algorithm: PublicKeyAlgorithm,
        key_id: Option<&str>,
    ) -> Result<u64, TokenError> {
        let missing = || TokenError::MissingKeys(MissingKeys(Arc::clone(&self.keys)));
        let usable = self.keys.usable().ok_or_else(missing)?;
        match usable.keys.verify(jws, algorithm, key_id) {
            SignatureVerdict::Valid => Ok(usable.generation),
            SignatureVerdict::NotValid => Err(problem::SIGNATURE.into()),
            SignatureVerdict::UnknownKey if self.keys.are_known_to_be_all() => {
                Err(problem::UNKNOWN_KEY.into())
            }
            SignatureVerdict::UnknownKey => Err(missing()),
        }
    }

    /// Checks the claims of a token whose signature is valid.
    fn check_claims(&self, claims: &Claims<'_>, now: Timestamp) -> Result<Subject, Problem> {
        claims.lifetime.check(now)?;
        if !claims.audience.as_ref().ok_or(problem::NO_AUDIENCE)?.contains(&self.audience) {
            return Err(problem::AUDIENCE);
        }
        let subject = claims.subject.as_deref().ok_or(problem::NO_SUBJECT)?;
        Ok(Subject::new(AuthMethod::Oidc, &self.name, subject, claims.lifetime))
    }
}

fn sha256(token: &str) -> TokenDigest {
    let hash = digest(&SHA256, token.as_bytes());
    hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
}
