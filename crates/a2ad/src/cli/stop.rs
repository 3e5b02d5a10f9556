//! How a client's verb ends: the exit code, and the sentence that goes with it.

use client::Error;
use http::StatusCode;
use protocol::{ErrorKind, TaskState};

/// The exit codes of the client's verbs. `0` is done, `1` could not, `130` is Ctrl-C.
pub(super) mod code {
    pub(in crate::cli) const DONE: u8 = 0;
    pub(in crate::cli) const COULD_NOT: u8 = 1;
    pub(in crate::cli) const USAGE: u8 = 2;
    pub(in crate::cli) const FAILED: u8 = 3;
    pub(in crate::cli) const WAITS: u8 = 4;
    pub(in crate::cli) const AUTH: u8 = 5;
    pub(in crate::cli) const NOT_FOUND: u8 = 6;
    pub(in crate::cli) const TIMEOUT: u8 = 7;
    pub(in crate::cli) const PROTOCOL: u8 = 8;
    pub(in crate::cli) const INTERRUPTED: u8 = 130;
}

/// Why a verb stops before its end.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) code: u8,
    /// One sentence for people; none when nobody listens any more.
    pub(super) text: String,
}

impl Stop {
    pub(super) fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self::new(code::USAGE, text)
    }
}

/// Whoever read our output has left.
impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        let closed = error.kind() == std::io::ErrorKind::BrokenPipe;
        let text = if closed { String::new() } else { format!("the output cannot be written: {error}") };
        Self::new(code::COULD_NOT, text)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        let mut text = error.to_string();
        if let Some(hint) = hint(&error) {
            text = format!("{text}; {hint}");
        }
        Self::new(code_of(&error), text)
    }
}

fn code_of(error: &Error) -> u8 {
    match error {
        Error::Url { .. } | Error::Elsewhere { .. } => code::USAGE,
        Error::Transport(_) => code::COULD_NOT,
        Error::NoCard { .. } => code::NOT_FOUND,
        Error::Timeout => code::TIMEOUT,
        Error::Ended { .. } => code::FAILED,
        Error::Status(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => code::AUTH,
        Error::Status(StatusCode::NOT_FOUND | StatusCode::GONE) => code::NOT_FOUND,
        Error::Status(StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT) => code::TIMEOUT,
        Error::Protocol(error) => match error.kind {
            ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => code::AUTH,
            ErrorKind::TaskNotFound | ErrorKind::AgentDisabled => code::NOT_FOUND,
            ErrorKind::DeadlineExceeded => code::TIMEOUT,
            ErrorKind::Unavailable | ErrorKind::RateLimited => code::COULD_NOT,
            _ => code::PROTOCOL,
        },
        _ => code::PROTOCOL,
    }
}

fn hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::Elsewhere { .. } => Some("call that endpoint itself, with --dialect, if you trust it"),
        Error::NoCard { .. } => Some("if this is an endpoint, say what it speaks with --dialect 1.0"),
        Error::NoMethod { .. } => Some("it came with A2A 1.0: try --dialect 1.0"),
        Error::Status(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Some(CREDENTIALS),
        Error::Protocol(error) => match error.kind {
            ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => Some(CREDENTIALS),
            ErrorKind::Unavailable | ErrorKind::RateLimited => Some("try again later"),
            ErrorKind::MethodNotFound | ErrorKind::VersionNotSupported => {
                Some("try another --dialect: 1.0, 0.3 or draft")
            }
            _ => None,
        },
        _ => None,
    }
}

const CREDENTIALS: &str = "give credentials with --bearer-env, --api-key-env or --header";

/// The exit code for how a task stands.
pub(super) fn code_of_state(state: TaskState) -> u8 {
    match state {
        TaskState::Failed | TaskState::Canceled | TaskState::Rejected => code::FAILED,
        TaskState::InputRequired | TaskState::AuthRequired => code::WAITS,
        _ => code::DONE,
    }
}
