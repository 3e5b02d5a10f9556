//! How a client's verb ends: the exit code, and the sentence that goes with it.

use client::Error;
use http::StatusCode;
use protocol::{ErrorKind, TaskState, json::write::Writer};

use super::{NothingToCheck, Unreadable, Unwritten};
use crate::{config, selftest, serve::ServeError};

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
    pub(in crate::cli) const DISK: u8 = 70;
    pub(in crate::cli) const INTERRUPTED: u8 = 130;
}

/// The exit codes as the help of the client's verbs lists them.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    done; the task is completed, is canceled as asked, or goes on without being waited for
  1    the agent cannot be reached or takes no calls now (503, 429), or the output cannot be written
  2    typed wrong
  3    the task failed, was rejected or canceled
  4    the task waits for input or credentials
  5    credentials are missing or refused
  6    no such agent or task
  7    no answer in time
  8    the agent refused the call, or does not speak A2A
  130  Ctrl-C
With --json, an error is one document on stderr: {\"error\": {\"exitCode\", \"message\", …}}.";

/// Why a verb stops before its end.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) code: u8,
    /// One sentence for people; none when nobody listens any more.
    pub(super) text: String,
    /// What to do next, if there is something to do.
    pub(super) next: Option<String>,
    /// One line for each problem, where there are several.
    pub(super) details: Vec<String>,
    /// Where it comes from, for whoever knows what to do about it.
    pub(super) cause: Option<Box<Error>>,
}

/// What was given that a piece of advice depends on.
pub(super) struct Given {
    /// The names of the flags that gave credentials, or may have.
    pub(super) credentials: Vec<&'static str>,
    /// Whether there is a credential among them, as far as can be seen: a header may say anything.
    pub(super) tells_who_calls: bool,
    /// Whether the dialect was forced.
    pub(super) dialect: bool,
}

impl Stop {
    pub(super) fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), next: None, details: Vec::new(), cause: None }
    }

    pub(super) fn with_next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }

    /// The same with what to do about its cause.
    pub(super) fn advised(self, given: &Given) -> Self {
        let advice = self.cause.as_ref().and_then(|cause| advice(cause, given));
        Self { next: self.next.or(advice), ..self }
    }

    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self::new(code::USAGE, text)
    }

    /// The error as one document.
    pub(super) fn document(&self) -> Vec<u8> {
        let reason = match self.cause.as_deref() {
            Some(Error::Protocol(error)) => Some(error.kind.row().reason),
            _ => None,
        };
        let mut writer = Writer::new();
        writer.object(|out| {
            out.key("error").object(|out| {
                out.key("exitCode").int(self.code.into());
                out.maybe_text("reason", reason);
                out.text("message", &self.text);
                out.maybe_text("hint", self.next.as_deref());
                out.texts_unless_empty("details", &self.details);
            });
        });
        writer.finish()
    }
}

/// How a verb of the server fails.
impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        if let Some(config::Error::Wrong(lines)) = error.downcast_ref() {
            let text = "the configuration cannot be used";
            return Self { details: lines.clone(), ..Self::usage(text) };
        }
        let code = match (error.downcast_ref(), error.downcast_ref()) {
            (Some(ServeError::StoreFailed(_)), _) => code::DISK,
            (Some(ServeError::NotLoopback(_)), _) | (_, Some(config::Error::Unreadable { .. })) => {
                code::USAGE
            }
            _ if error.is::<Unreadable>()
                || error.is::<NothingToCheck>()
                || error.is::<selftest::Usage>() =>
            {
                code::USAGE
            }
            _ => code::COULD_NOT,
        };
        // Nobody reads any more where the output was closed.
        let unread = error.downcast_ref().is_some_and(Unwritten::is_unread);
        Self::new(code, if unread { String::new() } else { format!("{error:#}") })
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
        let (code, text) = (code_of(&error), error.to_string());
        Self { cause: Some(Box::new(error)), ..Self::new(code, text) }
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

fn advice(error: &Error, given: &Given) -> Option<String> {
    let fixed = match error {
        Error::Elsewhere { .. } => "call that endpoint itself, with --dialect, if you trust it",
        Error::NoCard { .. } => "if this is an endpoint, say what it speaks with --dialect 1.0",
        Error::NoMethod { .. } => "it came with A2A 1.0: try --dialect 1.0",
        Error::Status(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => return Some(credentials(given)),
        Error::Protocol(error) => match error.kind {
            ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => return Some(credentials(given)),
            ErrorKind::Unavailable | ErrorKind::RateLimited => "try again later",
            ErrorKind::VersionNotSupported => "try another --dialect: 1.0, 0.3 or draft",
            // Where the card chose the dialect, another one has the method no more than this one.
            ErrorKind::MethodNotFound if given.dialect => "try it without --dialect",
            _ => return None,
        },
        _ => return None,
    };
    Some(fixed.to_owned())
}

fn credentials(given: &Given) -> String {
    let give = "give credentials with --bearer-env, --api-key-env or --header";
    match given.credentials.as_slice() {
        [] => give.to_owned(),
        flags => {
            let refused = format!("what {} gave does not let you in", flags.join(" and "));
            if given.tells_who_calls { refused } else { format!("{refused}; {give}") }
        }
    }
}

/// The exit code for how a task stands.
pub(super) fn code_of_state(state: TaskState) -> u8 {
    match state {
        TaskState::Failed | TaskState::Canceled | TaskState::Rejected => code::FAILED,
        TaskState::InputRequired | TaskState::AuthRequired => code::WAITS,
        _ => code::DONE,
    }
}
