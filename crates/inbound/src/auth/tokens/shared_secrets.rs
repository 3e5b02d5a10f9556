//! Tokens that are signed with a shared secret (HS256): that of the server, or that of an organisation.

use std::collections::HashMap;

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use engine::AuthMethod;
use protocol::{Timestamp, model::Secret};

use super::{Problem, Subject, claims::Claims, jws::Jws, problem};
use crate::auth::AuthOptions;

/// The shared secrets, and what is required of their tokens.
pub(super) struct SharedSecrets {
    /// That of the server, with its name.
    server: Option<(String, hmac::Key)>,
    /// By the value of `org_domain`.
    organisations: HashMap<String, hmac::Key>,
    /// In the place of an unknown organisation's secret: both cost the same. What it verifies is refused.
    unknown: hmac::Key,
    audiences: Vec<String>,
    /// Whether a token may have no subject: its name is then that of the secret alone.
    allow_anonymous: bool,
    /// Issuers with keys of their own. Their tokens are not signed with a secret.
    issuers: Vec<String>,
}

impl SharedSecrets {
    pub(super) fn new(options: &AuthOptions) -> Self {
        let key = |secret: &Secret| hmac::Key::new(HMAC_SHA256, secret.expose().as_bytes());
        // Everybody can sign with an empty secret.
        let is_secret = |secret: &Secret| !secret.expose().is_empty();
        let server = options.secret.as_ref().filter(|named| is_secret(&named.secret));
        let organisations = options.org_secrets.iter().filter(|(_, secret)| is_secret(secret));
        Self {
            server: server.map(|named| (named.name.clone(), key(&named.secret))),
            organisations: organisations.map(|(name, secret)| (name.clone(), key(secret))).collect(),
            unknown: hmac::Key::new(HMAC_SHA256, &[0; 32]),
            audiences: options.audiences.clone(),
            allow_anonymous: options.allow_anonymous_tokens,
            issuers: options.issuers.iter().map(|issuer| issuer.issuer.clone()).collect(),
        }
    }

    /// Verifies a token with the server's secret, else with that of the organisation which it names.
    pub(super) fn verify(
        &self,
        jws: &Jws<'_>,
        claims: &Claims<'_>,
        now: Timestamp,
    ) -> Result<Subject, Problem> {
        if self.server.is_none() && self.organisations.is_empty() {
            return Err(problem::NO_SECRETS);
        }
        let signer = self.signer(jws, claims).ok_or(problem::SIGNATURE)?;
        claims.lifetime.check(now)?;
        if claims.issuer.as_deref().is_some_and(|issuer| self.issuers.iter().any(|own| own == issuer)) {
            return Err(problem::ISSUER_HAS_KEYS);
        }
        if let Some(audience) = &claims.audience
            && !self.audiences.iter().any(|own| audience.contains(own))
        {
            return Err(problem::AUDIENCE);
        }
        let subject = match claims.subject.as_deref() {
            Some(subject) => subject,
            None if self.allow_anonymous => "",
            None => return Err(problem::NO_SUBJECT),
        };
        Ok(Subject::new(AuthMethod::Jwt, signer, subject))
    }

    /// The name of the secret that the token is signed with.
    fn signer<'a>(&'a self, jws: &Jws<'_>, claims: &'a Claims<'_>) -> Option<&'a str> {
        let is_signed = |key| hmac::verify(key, jws.signed, &jws.signature).is_ok();
        if let Some((name, key)) = &self.server
            && is_signed(key)
        {
            return Some(name);
        }
        let organisation = claims.organisation.as_deref()?;
        let found = self.organisations.get(organisation);
        (is_signed(found.unwrap_or(&self.unknown)) && found.is_some()).then_some(organisation)
    }
}
