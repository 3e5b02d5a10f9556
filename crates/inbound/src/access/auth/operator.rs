//! The credential of operators: the admin token.

use aws_lc_rs::constant_time;
use http::HeaderMap;
use protocol::{Error, ErrorKind, model::Secret};

use super::{
    RequiredCredentials,
    credentials::{Credential, Credentials},
    sha256,
};

/// Verifies the admin token. Has only its digest.
pub(crate) struct OperatorVerifier([u8; 32]);

impl OperatorVerifier {
    pub(crate) fn new(token: &Secret) -> Self {
        Self(sha256(token.expose()))
    }

    /// Checks that the head of a request presents the token.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Error> {
        let credentials =
            Credentials::read(headers, None, RequiredCredentials { caller: true, end_user: false })?;
        let refused = |text: &str| Err(Error::new(ErrorKind::Unauthenticated, text));
        match credentials.caller {
            Some(Credential::Bearer(token)) => {
                // Digests have one length, so that the time shows nothing of the token.
                let is_equal = constant_time::verify_slices_are_equal(&self.0, &sha256(&token)).is_ok();
                if is_equal { Ok(()) } else { refused("the admin token is not valid") }
            }
            Some(Credential::ApiKey(_) | Credential::Certificate(_)) | None => {
                refused("this path requires the admin token; send it as Authorization: Bearer TOKEN")
            }
        }
    }
}
