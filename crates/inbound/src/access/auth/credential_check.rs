//! Verification without a server, for fuzzing, tests and measurements.

use std::sync::Arc;

use engine::Engine;
use http::HeaderMap;
use protocol::{Error, ErrorKind, Timestamp};

use super::{
    AuthOptions, Authenticator, Effort, RequiredCredentials, Verification,
    tokens::{TokenError, TokenVerifier},
};
use crate::access::caller::Identity;

/// Verifies tokens as the server does.
#[doc(hidden)]
pub struct TokenCheck(TokenVerifier);

impl TokenCheck {
    /// With the secrets and issuers of these options.
    pub fn new(options: &AuthOptions) -> Self {
        Self(TokenVerifier::new(options))
    }

    /// The principal of a token that is valid at this time.
    ///
    /// # Errors
    ///
    /// What the caller would get.
    pub async fn principal(&self, token: &str, now: Timestamp) -> Result<Arc<str>, Error> {
        // The first attempt may need keys, and keys that may be newer.
        for _ in 0..2 {
            match self.0.verify(token, Effort::Full, now) {
                Ok(subject) => return Ok(subject.name),
                Err(TokenError::Refused(problem)) => {
                    return Err(Error::new(ErrorKind::Unauthenticated, problem));
                }
                Err(TokenError::MissingKeys(keys)) => self.0.load(keys).await?,
                Err(TokenError::NotCheap) => break,
            }
        }
        Err(super::unavailable())
    }
}

/// Verifies the credential in the head of a request as the server does.
#[doc(hidden)]
pub struct CredentialCheck(Arc<Authenticator>);

impl CredentialCheck {
    /// With the API keys and the clock of an engine.
    pub fn new(options: &AuthOptions, engine: &Engine) -> Self {
        Self(Arc::new(Authenticator::new(options, Arc::clone(engine.api_keys()), engine.clock().clone())))
    }

    /// The principal of the caller; `None` without a credential.
    ///
    /// # Errors
    ///
    /// What the caller would get.
    pub async fn principal(&self, headers: &HeaderMap) -> Result<Option<Arc<str>>, Error> {
        let verified =
            match self.0.verify(headers, None, RequiredCredentials { caller: true, end_user: false }, None) {
                Verification::Ready(verified) => verified?,
                Verification::Pending(pending) => pending.await?,
            };
        Ok(match verified.caller {
            Identity::Anonymous => None,
            Identity::Known(caller) => Some(Arc::clone(caller.principal())),
        })
    }
}
