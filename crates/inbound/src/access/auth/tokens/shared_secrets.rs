//! Tokens that are signed with a shared secret (HS256): that of the server, or that of an organisation. Those of
//! organisations can be replaced; what was verified with one that is not in use any more is not valid any more.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use arc_swap::ArcSwap;
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use engine::AuthMethod;
use protocol::{Timestamp, model::Secret};

use super::{Problem, Subject, claims::Claims, jws::Jws, problem};
use crate::access::auth::AuthOptions;

/// The shared secrets, and what is required of their tokens.
pub(super) struct SharedSecrets {
    /// That of the server, with its name.
    server: Option<(String, hmac::Key)>,
    organisations: ArcSwap<Organisations>,
    /// In the place of an unknown organisation's secret: both cost the same. What it verifies is refused.
    unknown: hmac::Key,
    audiences: Vec<String>,
    /// What the issuer of a token may be; empty: anything.
    accepted_issuers: Vec<String>,
    /// Whether a token may have no subject: its name is then that of the secret alone.
    allow_anonymous: bool,
    /// Issuers with keys of their own. Their tokens are not signed with a secret.
    issuers: Vec<String>,
}

/// The secrets of organisations.
#[derive(Default)]
struct Organisations {
    /// By the value of `org_domain` in lower case.
    secrets: HashMap<String, Arc<OrgSecret>>,
    /// The highest number that was used.
    last: u64,
}

struct OrgSecret {
    no: OrgSecretNo,
    /// The domain as it is configured, which is in the names of its callers.
    name: String,
    secret: Secret,
    key: hmac::Key,
}

/// The number of an organisation's secret, never used for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrgSecretNo(u64);

impl Organisations {
    /// Other secrets in the place of these; those that have not changed keep their numbers.
    fn replaced_by(&self, secrets: &BTreeMap<String, Secret>) -> Self {
        let mut last = self.last;
        let usable = secrets.iter().filter(|(_, secret)| is_usable(secret));
        let secrets = usable.map(|(name, secret)| {
            let domain = name.to_lowercase();
            let is_same = |known: &&Arc<OrgSecret>| known.secret == *secret && known.name == *name;
            let same = self.secrets.get(&domain).filter(is_same).cloned();
            let kept = same.unwrap_or_else(|| {
                last += 1;
                let (no, name, secret) = (OrgSecretNo(last), name.clone(), secret.clone());
                Arc::new(OrgSecret { no, name, key: key(&secret), secret })
            });
            (domain, kept)
        });
        Self { secrets: secrets.collect(), last }
    }
}

fn key(secret: &Secret) -> hmac::Key {
    hmac::Key::new(HMAC_SHA256, secret.expose().as_bytes())
}

/// Everybody can sign with an empty secret.
fn is_usable(secret: &Secret) -> bool {
    !secret.expose().is_empty()
}

impl SharedSecrets {
    pub(super) fn new(options: &AuthOptions) -> Self {
        let server = options.secret.as_ref().filter(|named| is_usable(&named.secret));
        Self {
            server: server.map(|named| (named.name.clone(), key(&named.secret))),
            organisations: ArcSwap::from_pointee(Organisations::default().replaced_by(&options.org_secrets)),
            unknown: hmac::Key::new(HMAC_SHA256, &[0; 32]),
            audiences: options.audiences.clone(),
            accepted_issuers: options.accepted_issuers.clone(),
            allow_anonymous: options.allow_anonymous_tokens,
            issuers: options.issuers.iter().map(|issuer| issuer.issuer.clone()).collect(),
        }
    }

    /// Replaces the secrets of organisations.
    pub(super) fn set_organisations(&self, secrets: &BTreeMap<String, Secret>) {
        let replaced = self.organisations.load().replaced_by(secrets);
        self.organisations.store(Arc::new(replaced));
    }

    /// Whether a secret of an organisation is in use.
    pub(super) fn has_organisation_secret(&self, no: OrgSecretNo) -> bool {
        self.organisations.load().secrets.values().any(|secret| secret.no == no)
    }

    /// Whether a secret has this name: that of the server, or of an organisation.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.server.as_ref().is_some_and(|(own, _)| own == name)
            || self.organisations.load().secrets.values().any(|secret| secret.name == name)
    }

    /// Verifies a token with the server's secret, else with that of the organisation which it names.
    pub(super) fn verify(
        &self,
        jws: &Jws<'_>,
        claims: &Claims<'_>,
        now: Timestamp,
    ) -> Result<Subject, Problem> {
        let organisations = self.organisations.load();
        if self.server.is_none() && organisations.secrets.is_empty() {
            return Err(problem::NO_SECRETS);
        }
        let (signer, org_secret) = self.signer(&organisations, jws, claims).ok_or(problem::SIGNATURE)?;
        claims.lifetime.check(now)?;
        if claims.issuer.as_deref().is_some_and(|issuer| self.issuers.iter().any(|own| own == issuer)) {
            return Err(problem::ISSUER_HAS_KEYS);
        }
        if let Some(issuer) = claims.issuer.as_deref()
            && !self.accepted_issuers.is_empty()
            && !self.accepted_issuers.iter().any(|accepted| accepted == issuer)
        {
            return Err(problem::ISSUER);
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
        Ok(Subject { org_secret, ..Subject::new(AuthMethod::Jwt, signer, subject, claims.lifetime) })
    }

    /// The secret that the token is signed with: its name, and its number if it is that of an organisation.
    fn signer<'a>(
        &'a self,
        organisations: &'a Organisations,
        jws: &Jws<'_>,
        claims: &Claims<'_>,
    ) -> Option<(&'a str, Option<OrgSecretNo>)> {
        let is_signed = |key| hmac::verify(key, jws.signed, &jws.signature).is_ok();
        if let Some((name, key)) = &self.server
            && is_signed(key)
        {
            return Some((name, None));
        }
        let domain = claims.organisation.as_deref()?.to_lowercase();
        let found = organisations.secrets.get(&domain);
        let is_signed = is_signed(found.map_or(&self.unknown, |found| &found.key));
        found.filter(|_| is_signed).map(|found| (found.name.as_str(), Some(found.no)))
    }
}
