//! Authentication: the credentials of a request become its [`Identity`], before its body is read.
//!
//! [`Credentials`] are what the head of a request presents. [`Authenticator::verify`] checks them against the static
//! token, the API keys and the token verifier. It needs no I/O as long as everything is loaded; what has to be
//! loaded first, such as the keys of an issuer, makes the result pending. Which agent accepts which credential is
//! decided by [`Identity::with_agent`](crate::access::caller::Identity::with_agent), because some requests name their agent
//! in the body.

mod credential_check;
mod credentials;
mod operator;
pub mod option_checks;
mod options;
pub(crate) mod schemes;
mod task_token;
mod tokens;

use std::{collections::BTreeMap, sync::Arc};

use aws_lc_rs::{
    constant_time,
    digest::{SHA256, digest},
};
use engine::{ApiKeys, Clock};
use futures_util::future::BoxFuture;
use http::HeaderMap;
use protocol::{Error, ErrorKind, model::Secret};

pub use credential_check::{CredentialCheck, TokenCheck};
pub use options::{
    ApiKeyOptions, AuthOptions, CallerNames, FetchKeys, Issuer, KEY_FETCH_TIMEOUT, KeyFetchError, KeyUrl,
    MAX_KEY_DOCUMENT_BYTES, NamedSecret,
};
pub use schemes::{example_headers, security_schemes};

pub(crate) use credentials::presented;
pub(crate) use operator::OperatorVerifier;
pub(crate) use task_token::{TaskToken, TaskTokens};
pub(crate) use tokens::Subject;

use self::{
    credentials::{Credential, Credentials},
    tokens::{MissingKeys, TokenError, TokenVerifier},
};
use crate::access::caller::{Caller, Identity, Proof};

/// Verifies the credentials of requests.
pub(crate) struct Authenticator {
    tokens: TokenVerifier,
    /// The digest of the static token.
    bearer: Option<[u8; 32]>,
    api_keys: Arc<ApiKeys>,
    clock: Clock,
}

/// Which credentials of a request are verified. The others are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequiredCredentials {
    /// That of the caller.
    pub(crate) caller: bool,
    /// The token of the end user.
    pub(crate) end_user: bool,
}

/// How much work a verification may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// As much as it needs.
    Full,
    /// No signature of a public key that was not verified before: so many credentials of the sender were refused that the
    /// next one is not worth it. Valid secrets, API keys and tokens in use go on.
    Cheap,
}

/// Who has sent a request, as far as its credentials prove it.
#[derive(Clone, Debug)]
pub(crate) struct VerifiedSender {
    pub(crate) caller: Identity,
    /// On whose behalf the caller acts.
    pub(crate) end_user: Option<Subject>,
}

/// The result of verification, or its future.
pub(crate) enum Verification {
    Ready(Result<VerifiedSender, Error>),
    /// Something has to be loaded first.
    Pending(BoxFuture<'static, Result<VerifiedSender, Error>>),
}

/// Why credentials are not verified.
enum AuthError {
    Refused(Error),
    /// This has to be loaded first.
    NotLoaded(UnloadedKeys),
    /// It is more work than the effort permits.
    NotCheap,
}

enum UnloadedKeys {
    ApiKeys,
    IssuerKeys(MissingKeys),
}

/// How often something may have to be loaded for one request: the API keys, and the keys of two tokens with a document
/// that names their address each.
const MAX_LOADS: usize = 5;

impl Authenticator {
    pub(crate) fn new(options: &AuthOptions, api_keys: Arc<ApiKeys>, clock: Clock) -> Self {
        let hash = |secret: &Secret| sha256(secret.expose());
        Self {
            tokens: TokenVerifier::new(options),
            bearer: options.bearer.as_ref().map(hash),
            api_keys,
            clock,
        }
    }

    /// Replaces the secrets of organisations.
    pub(crate) fn set_org_secrets(&self, secrets: &BTreeMap<String, Secret>) {
        self.tokens.set_org_secrets(secrets);
    }

    /// Checks that what has identified a caller has not been revoked.
    pub(crate) fn check(&self, identity: &Identity) -> Result<(), Error> {
        let Identity::Known(caller) = identity else { return Ok(()) };
        let unauthenticated = |text: &str| Err(Error::new(ErrorKind::Unauthenticated, text));
        match caller.proof() {
            Proof::ApiKey(key) if !self.api_keys.is_valid(key) => unauthenticated(KEY_NOT_VALID),
            Proof::Token(subject) if !self.tokens.is_current(subject) => unauthenticated(SECRET_REPLACED),
            Proof::ApiKey(_)
            | Proof::Token(_)
            | Proof::Application
            | Proof::StaticToken
            | Proof::Certificate => Ok(()),
        }
    }

    /// The same for the token of an end user.
    pub(crate) fn check_end_user(&self, subject: &Subject) -> Result<(), Error> {
        if self.tokens.is_current(subject) {
            return Ok(());
        }
        let error = Error::new(ErrorKind::Unauthenticated, SECRET_REPLACED);
        Err(schemes::with_end_user_challenge(error))
    }

    /// Whether a principal is the subject of a token, and nothing could verify one of its tokens.
    pub(crate) fn has_unknown_authority(&self, principal: &str) -> bool {
        self.tokens.has_unknown_authority(principal)
    }

    /// Verifies the wanted credentials in the head of a request, whose connection may have a client certificate. With
    /// `refused`, that is the error for credentials whose verification is costly.
    pub(crate) fn verify(
        self: &Arc<Self>,
        headers: &HeaderMap,
        certificate: Option<&Arc<str>>,
        wanted: RequiredCredentials,
        refused: Option<Error>,
    ) -> Verification {
        let credentials = match Credentials::read(headers, certificate, wanted) {
            Ok(credentials) => credentials,
            Err(error) => return Verification::Ready(Err(error)),
        };
        let effort = if refused.is_some() { Effort::Cheap } else { Effort::Full };
        let missing = match self.try_verify(&credentials, effort) {
            Ok(verified) => return Verification::Ready(Ok(verified)),
            Err(AuthError::Refused(error)) => return Verification::Ready(Err(error)),
            Err(AuthError::NotCheap) => {
                return Verification::Ready(Err(refused.unwrap_or_else(unavailable)));
            }
            Err(AuthError::NotLoaded(missing)) => missing,
        };
        let (this, credentials) = (Arc::clone(self), credentials.into_owned());
        Verification::Pending(Box::pin(
            async move { this.load_and_verify(&credentials, effort, missing).await },
        ))
    }

    async fn load_and_verify(
        &self,
        credentials: &Credentials<'_>,
        effort: Effort,
        mut missing: UnloadedKeys,
    ) -> Result<VerifiedSender, Error> {
        for _ in 0..MAX_LOADS {
            match missing {
                UnloadedKeys::ApiKeys => self.api_keys.load().await.map_err(|error| {
                    tracing::warn!(%error, "the API keys cannot be read");
                    unavailable()
                })?,
                UnloadedKeys::IssuerKeys(keys) => self.tokens.load(keys).await?,
            }
            match self.try_verify(credentials, effort) {
                Ok(verified) => return Ok(verified),
                Err(AuthError::Refused(error)) => return Err(error),
                Err(AuthError::NotCheap) => return Err(unavailable()),
                Err(AuthError::NotLoaded(next)) => missing = next,
            }
        }
        Err(unavailable())
    }

    fn try_verify(&self, credentials: &Credentials<'_>, effort: Effort) -> Result<VerifiedSender, AuthError> {
        let caller = match &credentials.caller {
            None => Identity::Anonymous,
            Some(Credential::ApiKey(key)) => self.api_key(key)?,
            Some(Credential::Bearer(token)) => self.bearer(token, effort)?,
            Some(Credential::Certificate(principal)) => {
                Identity::Known(Caller::with_certificate(Arc::clone(principal)))
            }
        };
        let end_user = match &credentials.end_user {
            None => None,
            Some(token) => Some(self.token(token, END_USER_TOKEN, effort).map_err(AuthError::of_end_user)?),
        };
        Ok(VerifiedSender { caller, end_user })
    }

    /// The caller with a bearer token: the static one, a JWT or an API key.
    fn bearer(&self, token: &str, effort: Effort) -> Result<Identity, AuthError> {
        if let Some(expected) = &self.bearer
            && constant_time::verify_slices_are_equal(expected, &sha256(token)).is_ok()
        {
            return Ok(Identity::Known(Caller::with_static_token()));
        }
        if !tokens::is_jwt(token) {
            return self.api_key(token);
        }
        let subject = self.token(token, "the token in Authorization", effort)?;
        Ok(Identity::Known(Caller::with_token(subject)))
    }

    fn api_key(&self, text: &str) -> Result<Identity, AuthError> {
        match self.api_keys.find(text) {
            Ok(Some(key)) => Ok(Identity::Known(Caller::with_api_key(key))),
            Ok(None) => Err(refused(KEY_NOT_VALID)),
            Err(engine::KeysNotLoaded) => Err(AuthError::NotLoaded(UnloadedKeys::ApiKeys)),
        }
    }

    /// Verifies a JWT; `what` begins the error text.
    fn token(&self, token: &str, what: &str, effort: Effort) -> Result<Subject, AuthError> {
        self.tokens.verify(token, effort, self.clock.now()).map_err(|unverified| match unverified {
            TokenError::Refused(problem) => refused(format!("{what} is not valid: {problem}")),
            TokenError::NotCheap => AuthError::NotCheap,
            TokenError::MissingKeys(keys) => AuthError::NotLoaded(UnloadedKeys::IssuerKeys(keys)),
        })
    }
}

impl AuthError {
    /// About the end user's token.
    fn of_end_user(self) -> Self {
        match self {
            Self::Refused(error) => Self::Refused(schemes::with_end_user_challenge(error)),
            Self::NotLoaded(missing) => Self::NotLoaded(missing),
            Self::NotCheap => Self::NotCheap,
        }
    }
}

const KEY_NOT_VALID: &str = "the API key is not valid: it is unknown or revoked";
const SECRET_REPLACED: &str =
    "the token is not valid any more: the secret of its organisation was removed or replaced";

/// The header of the end user's token, as error texts name it.
const END_USER_TOKEN: &str = "the token in X-End-User-Token";

fn refused(text: impl Into<String>) -> AuthError {
    AuthError::Refused(Error::new(ErrorKind::Unauthenticated, text))
}

fn unavailable() -> Error {
    Error::new(ErrorKind::Unavailable, "credentials cannot be verified right now; try again in a second")
}

fn sha256(text: &str) -> [u8; 32] {
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
}
