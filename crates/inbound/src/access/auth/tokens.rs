//! Verifies JSON Web Tokens (RFC 7519) with the configured secrets and the keys of the configured issuers.
//!
//! The algorithm in the header of a token only chooses between the two kinds of keys: [`SharedSecrets`] verify HS256 and
//! nothing else, [`Issuers`] verify signatures of public keys and nothing else, so that a public key can never be used
//! as a secret. Within an issuer the algorithm has to be one that the key is for. Nothing that a token names is fetched.
//!
//! Verification is synchronous. Only the keys of an issuer may have to be loaded first; see [`IssuerKeys`]. The time of
//! validity is a parameter, the age of caches is measured with the runtime's clock.

mod claims;
mod discovery;
mod issuer_keys;
mod issuers;
mod jwks;
mod jws;
mod key_documents;
mod members;
mod shared_secrets;
mod verified_tokens;

use std::{collections::BTreeMap, sync::Arc};

use engine::{ApiKey, AuthMethod};
use protocol::{Error, Timestamp, model::Secret};

use self::{
    claims::{Claims, Lifetime},
    issuer_keys::IssuerKeys,
    issuers::Issuers,
    jws::Algorithm,
    jws::Jws,
    shared_secrets::{OrgSecretNo, SharedSecrets},
};
use super::{AuthOptions, CallerNames, Effort};
use crate::tls;

/// Verifies tokens with the configured secrets and the keys of the configured issuers.
pub(super) struct TokenVerifier {
    secrets: SharedSecrets,
    issuers: Issuers,
    caller_names: CallerNames,
}

/// Whom a verified token identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) method: AuthMethod,
    /// `<issuer or name of the secret>#<sub>`
    pub(crate) name: Arc<str>,
    /// The last moment of the token's validity, with leeway.
    pub(crate) expires: Timestamp,
    /// The secret of an organisation with which the token is signed.
    org_secret: Option<OrgSecretNo>,
}

impl Subject {
    fn new(method: AuthMethod, authority: &str, subject: &str, lifetime: Lifetime) -> Self {
        let name = format!("{authority}{SEPARATOR}{subject}").into();
        Self { method, name, expires: lifetime.last_moment(), org_secret: None }
    }
}

/// Separates the name of who has verified a token from its subject.
const SEPARATOR: char = '#';
/// What principals begin with that no token identifies. No secret and no issuer has such a name.
const OTHER_KINDS: [&str; 2] = [ApiKey::PRINCIPAL, tls::PRINCIPAL];

/// Why a token is not verified.
pub(super) enum TokenError {
    /// What is wrong, as the end of a sentence. Contains nothing of the token.
    Refused(Problem),
    /// These keys have to be loaded first.
    MissingKeys(MissingKeys),
    /// Only a signature of a public key can tell, and that is more than the effort permits.
    NotCheap,
}

/// What is wrong with a token; one of the texts in [`problem`].
type Problem = &'static str;

/// Keys that have to be loaded.
pub(super) struct MissingKeys(Arc<IssuerKeys>);

/// Every reason to refuse a token. Each ends a sentence that names the header of the token.
mod problem {
    use super::Problem;

    pub(super) const TOO_LONG: Problem = "it is longer than 8 KiB";
    pub(super) const NOT_A_TOKEN: Problem =
        "it is not a JSON Web Token of three parts in base64url without padding";
    pub(super) const HEADER: Problem =
        "its header is not a JSON object whose members occur once and have the right type";
    pub(super) const CRITICAL: Problem = "its header has crit, and no extension is supported";
    pub(super) const TYPE: Problem = "its type is neither JWT nor at+jwt";
    pub(super) const ALGORITHM: Problem = "its algorithm is not one that this server accepts";
    pub(super) const CLAIMS: Problem = "its claims are not a JSON object whose members occur once";
    pub(super) const TIMES: Problem = "exp, nbf and iat have to be numbers of seconds since 1970";
    pub(super) const NO_EXPIRY: Problem = "it has no exp";
    pub(super) const TEXTS: Problem =
        "iss, sub and org_domain have to be text, and aud text or a list of texts";
    pub(super) const SUBJECT: Problem =
        "sub has to be text of at most 256 characters without control characters";
    pub(super) const NO_SUBJECT: Problem = "it has no sub";
    pub(super) const NO_AUDIENCE: Problem = "it has no aud";
    pub(super) const NO_ISSUER: Problem = "it has no iss";
    pub(super) const SIGNATURE: Problem = "its signature does not match";
    pub(super) const UNKNOWN_KEY: Problem = "its issuer has no key with its kid";
    pub(super) const EXPIRED: Problem = "it has expired";
    pub(super) const NOT_YET_VALID: Problem = "it is not valid yet";
    pub(super) const AUDIENCE: Problem = "it is for another audience";
    pub(super) const ISSUER: Problem = "its issuer is unknown here";
    pub(super) const ISSUER_HAS_KEYS: Problem =
        "its issuer signs with a key of its own and not with a shared secret";
    pub(super) const NO_SECRETS: Problem = "this server has no shared secret to verify it";
    pub(super) const NO_ISSUERS: Problem = "this server knows no issuer to verify it";
}

/// Whether a text has the form of a token: three parts.
pub(super) fn is_jwt(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl TokenVerifier {
    pub(super) fn new(options: &AuthOptions) -> Self {
        Self {
            secrets: SharedSecrets::new(options),
            issuers: Issuers::new(options),
            caller_names: options.caller_names,
        }
    }

    /// The subject of a token that is valid now.
    pub(super) fn verify(&self, token: &str, effort: Effort, now: Timestamp) -> Result<Subject, TokenError> {
        let jws = Jws::split(token)?;
        let header = jws.header()?;
        match header.algorithm {
            Algorithm::SharedSecret => {
                let claims = jws.claims()?;
                Ok(self.secrets.verify(&jws, &Claims::read(&claims)?, now)?)
            }
            Algorithm::PublicKey(algorithm) => self.issuers.verify(&jws, &header, algorithm, effort, now),
        }
    }

    /// Replaces the secrets of organisations.
    pub(super) fn set_org_secrets(&self, secrets: &BTreeMap<String, Secret>) {
        self.secrets.set_organisations(secrets);
    }

    /// Whether what has verified a token is still in use. A token of an issuer is not asked for again before it expires.
    pub(super) fn is_current(&self, subject: &Subject) -> bool {
        subject.org_secret.is_none_or(|secret| self.secrets.has_organisation_secret(secret))
    }

    /// Whether a principal has the name of a token's subject, and nothing here could verify such a token. The names of API
    /// keys and certificates may contain the separator too.
    pub(super) fn has_unknown_authority(&self, principal: &str) -> bool {
        let is_of_other_kind = OTHER_KINDS.iter().any(|kind| principal.starts_with(kind));
        if is_of_other_kind || self.caller_names == CallerNames::Application {
            return false;
        }
        let authority = principal.split_once(SEPARATOR).map(|(authority, _)| authority);
        authority.is_some_and(|name| !self.secrets.has_name(name) && !self.issuers.has_name(name))
    }

    /// Loads keys. An error is for the caller.
    pub(super) async fn load(&self, missing: MissingKeys) -> Result<(), Error> {
        missing.0.loaded().await.map_err(|_| super::unavailable())
    }
}

impl From<Problem> for TokenError {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_tokens_have_an_authority() {
        let secrets = [("acme.example".to_owned(), Secret::new("a secret of 32 bytes or even more"))];
        let options = AuthOptions { org_secrets: secrets.into(), ..AuthOptions::default() };
        let verifier = TokenVerifier::new(&options);
        for (principal, is_unknown) in [
            ("acme.example#alice", false),
            ("gone.example#alice", true),
            ("https://gone.example#key:alice", true),
            ("key:team#1", false),
            ("key:#", false),
            ("mtls:uri:https://acme.example/agents#1", false),
            ("mtls:dn:CN=a#b", false),
            ("bearer", false),
        ] {
            assert_eq!(verifier.has_unknown_authority(principal), is_unknown, "{principal}");
        }
        let mounted = TokenVerifier::new(&AuthOptions { caller_names: CallerNames::Application, ..options });
        assert!(!mounted.has_unknown_authority("team#1"));
    }
}
