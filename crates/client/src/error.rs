//! What can go wrong with a call, told apart by whose doing it is.

use http::StatusCode;
use protocol::{ErrorKind, TaskState, Violation};
use rustls::CertificateError;

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
    /// The generation that is spoken has no such operation.
    #[error("A2A {version} has no {method}")]
    NoMethod {
        /// What is spoken.
        version: &'static str,
        /// The operation, by its name in 1.0.
        method: &'static str,
    },
    /// The agent was not reached, or the connection broke.
    #[error("{}: {}", failed_connection(.0.as_ref()), causes(.0.as_ref()))]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The agent, or something in front of it, answered with a status and no answer of the protocol.
    #[error("the agent answered with HTTP status {0} and no JSON-RPC answer")]
    Status(StatusCode),
    /// The agent sends its callers elsewhere; they decide themselves whether to go.
    #[error("the agent has moved to {location}; call it there")]
    Moved {
        /// Where to.
        location: String,
    },
    /// The agent refused the call, or failed at it, and says why.
    #[error("the agent answered with an error: {0}")]
    Protocol(#[source] protocol::Error),
    /// What the agent said is not A2A.
    #[error("the agent's answer is not A2A: {}", place(.0))]
    Malformed(Violation),
    /// The answer, or one event of a stream, is larger than this client takes.
    #[error("the agent's answer is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit in effect.
        limit_bytes: usize,
    },
    /// There is no card where cards are.
    #[error("there is no agent card at {url}")]
    NoCard {
        /// Where it was looked for.
        url: String,
    },
    /// The card offers nothing this client speaks.
    #[error("the agent's card offers no JSON-RPC interface this client speaks, but {offered}")]
    NoInterface {
        /// What it offers instead.
        offered: String,
    },
    /// The card names an endpoint of another origin, and there are credentials that must not go there unasked.
    #[error(
        "the card's endpoint {endpoint} is on another host than the card: credentials are not sent there"
    )]
    Elsewhere {
        /// The endpoint the card names.
        endpoint: String,
    },
    /// The task was not settled in time.
    #[error("the agent has not finished in time")]
    Timeout,
    /// The task ended without success.
    #[error("the task ended as {state:?}: {text}")]
    Ended {
        /// How it ended.
        state: TaskState,
        /// What the agent says about it.
        text: String,
    },
}

impl Error {
    pub(crate) fn transport(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Transport(error.into())
    }

    /// Whether the same call may succeed a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Transport(_) => true,
            Self::Status(status) => {
                status.is_server_error()
                    || matches!(*status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
            }
            Self::Protocol(error) => matches!(
                error.kind,
                ErrorKind::Unavailable | ErrorKind::RateLimited | ErrorKind::DeadlineExceeded
            ),
            _ => false,
        }
    }

    /// Whether this means that there is no card, though there may be an agent.
    pub fn is_without_card(&self) -> bool {
        match self {
            Self::NoCard { .. } | Self::Malformed(_) => true,
            Self::Status(status) => !matches!(*status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN),
            _ => false,
        }
    }

    /// Whether the server's certificate is not trusted.
    pub fn is_untrusted_certificate(&self) -> bool {
        matches!(self, Self::Transport(error) if certificate_error(error.as_ref()).is_some())
    }

    /// Whether the agent says that it does not do this kind of call.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(self, Self::Protocol(error)
            if matches!(error.kind, ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound))
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

/// Which connection failed, by its address where that is known.
fn failed_connection(error: &(dyn std::error::Error + 'static)) -> String {
    let Some(error) = error.downcast_ref::<reqwest::Error>() else {
        return "the connection to the agent failed".to_owned();
    };
    let address = error.url().map(|url| url.origin().ascii_serialization());
    let address = address.as_deref().unwrap_or("the agent");
    if error.is_connect() {
        format!("cannot connect to {address}")
    } else {
        format!("the connection to {address} failed")
    }
}

/// The innermost cause; the layers above it only state that sending failed.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(problem) = certificate_error(error) {
        return format!("its certificate is not trusted: {}", describe_certificate(problem));
    }
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// An error and its causes, from the outside in.
fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// What is wrong with the server's certificate, if that is the cause.
fn certificate_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a CertificateError> {
    chain(error).find_map(|cause| {
        let mut cause = cause;
        // An I/O error hides the error it was made from: its source is that error's source.
        while let Some(inner) = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            cause = inner;
        }
        match cause.downcast_ref::<rustls::Error>() {
            Some(rustls::Error::InvalidCertificate(problem)) => Some(problem),
            _ => None,
        }
    })
}

fn describe_certificate(problem: &CertificateError) -> String {
    match problem {
        CertificateError::UnknownIssuer => "it is signed by an authority this machine does not know".into(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".into(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet; check the clock of this machine".into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another host name".into()
        }
        CertificateError::Revoked => "it has been revoked".into(),
        other => other.to_string(),
    }
}
