//! Whose fault it is when an operation does not succeed.

use protocol::{ErrorKind, Violation};

/// Why an operation did not succeed, by whose fault it is. `inbound` chooses the reply.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's: the protocol error says why.
    #[error("{0}")]
    Refused(protocol::Error),
    /// Ours and passing: try again. The reason is for the log.
    #[error("not available: {0}")]
    Unavailable(String),
    /// Ours and passing, in words that are meant for the caller.
    #[error("{0}")]
    Later(protocol::Error),
    /// Ours and a bug: the caller learns nothing but the request id.
    #[error("broken: {0}")]
    Broken(String),
}

/// What operations return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<protocol::Error> for Error {
    fn from(error: protocol::Error) -> Self {
        Self::Refused(error)
    }
}

impl Error {
    /// A refusal that names a field.
    pub fn invalid(field: &str, problem: impl std::fmt::Display) -> Self {
        Self::Refused(protocol::Error::invalid_params(Violation::new(field, problem)))
    }

    /// Not now, in the caller's words.
    pub fn later(text: impl Into<String>) -> Self {
        Self::Later(protocol::Error::new(ErrorKind::Unavailable, text))
    }

    /// A refusal of a kind.
    pub fn refused(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Refused(protocol::Error::new(kind, message))
    }
}
