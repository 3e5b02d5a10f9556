//! Errors of operations, grouped by who can fix them: the caller, a later retry, or a developer.

use protocol::{ErrorKind, Violation};

/// Why an operation failed. `inbound` maps it to a reply.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's request is invalid or not allowed; the protocol error has the reason.
    #[error("{0}")]
    Refused(protocol::Error),
    /// A temporary failure of the server: retry later. The reason is logged, not sent.
    #[error("not available: {0}")]
    Unavailable(String),
    /// A temporary failure of the server whose text is sent to the caller.
    #[error("{0}")]
    RetryLater(protocol::Error),
    /// A bug or damaged data: logged; the caller gets an internal error with the request id.
    #[error("broken: {0}")]
    Broken(String),
}

/// Result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<protocol::Error> for Error {
    fn from(error: protocol::Error) -> Self {
        Self::Refused(error)
    }
}

impl Error {
    /// `InvalidParams` for one field.
    pub fn invalid(field: &str, problem: impl std::fmt::Display) -> Self {
        Self::Refused(protocol::Error::invalid_params(Violation::new(field, problem)))
    }

    /// Temporarily unavailable, with a text for the caller.
    pub fn later(text: impl Into<String>) -> Self {
        Self::RetryLater(protocol::Error::new(ErrorKind::Unavailable, text))
    }

    /// A rejected request.
    pub fn refused(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Refused(protocol::Error::new(kind, message))
    }
}
