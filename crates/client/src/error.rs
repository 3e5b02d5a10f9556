//! What can go wrong with a call, told apart by whose doing it is.

use http::StatusCode;
use protocol::Violation;

/// Why a call has no reply.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL cannot be called by this client.
    #[error("{url:?} cannot be called: {problem}")]
    Url {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The operation is answered in the other way, by one reply or by a stream.
    #[error("{method} cannot be called this way: {problem}")]
    Misuse {
        /// The method of the operation.
        method: &'static str,
        /// What to call instead.
        problem: &'static str,
    },
    /// The agent was not reached, or the connection broke.
    #[error("the connection to the agent failed: {0}")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The agent, or something in front of it, answered with a status and no answer of the protocol.
    #[error("the agent answered with HTTP status {0} and no JSON-RPC answer")]
    Status(StatusCode),
    /// The agent refused the call, or failed at it, and says why.
    #[error("the agent answered with an error: {0}")]
    Protocol(#[source] protocol::Error),
    /// What the agent said is not A2A 1.0.
    #[error("the agent's answer is not A2A 1.0: {}", place(.0))]
    Malformed(Violation),
    /// The answer, or one event of a stream, is larger than this client takes.
    #[error("the agent's answer is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit in effect.
        limit_bytes: usize,
    },
    /// The card offers nothing this client speaks.
    #[error("the agent's card offers no JSON-RPC interface of A2A 1.0, but {offered}")]
    NoInterface {
        /// What it offers instead.
        offered: String,
    },
}

impl Error {
    pub(crate) fn transport(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Transport(error.into())
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::Malformed(violation)
    }
}

fn place(violation: &Violation) -> String {
    match violation.field.as_str() {
        "" => violation.problem.clone(),
        field => format!("{field}: {}", violation.problem),
    }
}
