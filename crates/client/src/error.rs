//! The errors of a call, distinguished by their cause.

use http::StatusCode;
use protocol::{ErrorKind, TaskState, Violation};
use rustls::CertificateError;

use crate::TransportError;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL cannot be called by this client.
    #[error("{url:?} cannot be called: {problem}")]
    Url {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The dialect in use has no such operation.
    #[error("A2A {version} has no {method}")]
    NoMethod {
        /// The version of the dialect in use.
        version: &'static str,
        /// The operation, by its 1.0 name.
        method: &'static str,
    },
    /// The agent could not be reached, or the connection broke.
    #[error("{}: {}", .0, causes(.0))]
    Transport(#[from] TransportError),
    /// The agent, or a proxy in front of it, responded with an HTTP status and no protocol response.
    #[error("the agent answered with HTTP status {0} and no JSON-RPC response")]
    Status(StatusCode),
    /// The agent redirects; redirects are not followed, the caller decides.
    #[error("the agent redirects to {location}; use that URL")]
    Redirected {
        /// The redirect target.
        location: String,
    },
    /// The agent rejected the call or failed, and returned a protocol error.
    #[error("the agent answered with an error: {0}")]
    Protocol(#[source] protocol::Error),
    /// The response does not conform to A2A.
    #[error("the agent's response is not valid A2A: {}", describe(.0))]
    Malformed(Violation),
    /// A response, or one event of a stream, exceeds the size limit.
    #[error("the agent's response is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit in effect.
        limit_bytes: usize,
    },
    /// No card was found at any known location.
    #[error("there is no agent card at {url}")]
    NoCard {
        /// The URL where the search started.
        url: String,
    },
    /// The card has no JSON-RPC interface in a supported version.
    #[error("the agent's card offers no JSON-RPC interface this client supports, only {offered}")]
    NoInterface {
        /// The interfaces it has.
        offered: String,
    },
    /// The card names an endpoint on another origin, and credentials must not be sent there implicitly.
    #[error(
        "the card's endpoint {endpoint} is on another host than the card: credentials are not sent there"
    )]
    OtherOrigin {
        /// The endpoint named in the card.
        endpoint: String,
    },
    /// The task did not settle before the timeout.
    #[error("the agent did not finish before the timeout")]
    Timeout,
    /// The task ended without success.
    #[error("the task ended as {state:?}: {text}")]
    Ended {
        /// The final state.
        state: TaskState,
        /// The agent's status message.
        text: String,
    },
}

impl Error {
    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Transport(error) => !matches!(error, TransportError::Forbidden { .. }),
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

    /// Whether the error means that there is no card, though there may be an agent.
    pub fn means_no_card(&self) -> bool {
        match self {
            Self::NoCard { .. } | Self::Malformed(_) => true,
            Self::Status(status) => !matches!(*status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN),
            _ => false,
        }
    }

    /// Whether the server's certificate is not trusted.
    pub fn is_untrusted_certificate(&self) -> bool {
        matches!(self, Self::Transport(error) if certificate_error(error).is_some())
    }

    /// Whether the agent does not support the operation.
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

fn describe(violation: &Violation) -> String {
    match violation.field.as_str() {
        "" => violation.problem.clone(),
        field => format!("{field}: {}", violation.problem),
    }
}

/// The innermost cause: the outer errors only repeat that sending failed.
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
        CertificateError::BadEncoding => "it cannot be read".into(),
        CertificateError::BadSignature => "its signature is wrong".into(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not for servers".into()
        }
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "its server has signed it itself, and it is not in the list of trusted certificates".into()
        }
        _ => "it breaks the rules for certificates of servers".into(),
    }
}
