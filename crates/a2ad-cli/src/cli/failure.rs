//! The error of a command: exit code, message and what to do next.

use a2ad::ServeError;
use client::Error;
use http::StatusCode;
use protocol::{ErrorKind, TaskState, json::write::Writer};

use crate::cli::NoConfigFile;

use crate::cli::OutputError;

use crate::cli::UnreadableFile;
use crate::config;

/// Exit codes. The help of each command lists the ones it uses.
pub(crate) mod code {
    pub(in crate::cli) const SUCCESS: u8 = 0;
    pub(in crate::cli) const ERROR: u8 = 1;
    pub(in crate::cli) const USAGE: u8 = 2;
    pub(in crate::cli) const TASK_FAILED: u8 = 3;
    pub(in crate::cli) const TASK_WAITS: u8 = 4;
    pub(in crate::cli) const AUTH: u8 = 5;
    pub(in crate::cli) const NOT_FOUND: u8 = 6;
    pub(in crate::cli) const TIMEOUT: u8 = 7;
    pub(in crate::cli) const PROTOCOL: u8 = 8;
    pub(in crate::cli) const DISK_FAILED: u8 = 70;
    pub(in crate::cli) const INTERRUPTED: u8 = 130;
}

/// The exit codes in the help of the client commands.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    success: the task completed, was canceled on request, or was not waited for
  1    the agent is unreachable or unavailable (503, 429), or the output cannot be written
  2    invalid arguments
  3    the task failed, was rejected or canceled
  4    the task waits for input or credentials
  5    credentials are missing or were refused
  6    no such agent or task
  7    timed out
  8    the agent rejected the call, or its response is not A2A
  130  Ctrl-C
With --json, an error is one document on stderr: {\"error\": {\"exitCode\", \"message\", …}}.";

/// Why a command ends early.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// For people; empty if the reader of the output has closed it.
    pub(crate) text: String,
    /// What to do next, if anything.
    pub(crate) next: Option<String>,
    /// One line for each problem if there are several.
    pub(crate) details: Vec<String>,
    /// The client error behind it; [`Self::advised`] derives the advice from it.
    pub(crate) cause: Option<Box<Error>>,
}

/// The flags that the advice depends on.
pub(crate) struct GivenFlags {
    /// The names of the flags that gave credentials or headers.
    pub(crate) credentials: Vec<&'static str>,
    /// Whether there is a credential among them. A header may carry anything, so this is a heuristic.
    pub(crate) has_credential: bool,
    /// Whether `--dialect` was given.
    pub(crate) dialect: bool,
    /// What the agent's card requires of its callers, if that is known.
    pub(crate) required: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), next: None, details: Vec::new(), cause: None }
    }

    pub(crate) fn with_next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }

    /// Adds what to do about an id that is not known.
    pub(crate) fn with_hint_if_not_found(self, next: &str) -> Self {
        if self.code == code::NOT_FOUND { self.with_next(next) } else { self }
    }

    /// Adds what to do about the cause.
    pub(crate) fn advised(self, given: &GivenFlags) -> Self {
        let advice = self.cause.as_ref().and_then(|cause| advice(cause, given));
        Self { next: self.next.or(advice), ..self }
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(code::USAGE, text)
    }

    /// The error as one JSON document.
    pub(crate) fn document(&self) -> Vec<u8> {
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

/// An error of a server command.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        if let Some(config::Error::Invalid(lines)) = error.downcast_ref() {
            let text = "the configuration cannot be used";
            return Self { details: lines.clone(), ..Self::usage(text) };
        }
        let code = match (error.downcast_ref(), error.downcast_ref()) {
            (Some(ServeError::StoreFailed(_)), _) => code::DISK_FAILED,
            (Some(ServeError::Unprotected { .. }), _) | (_, Some(config::Error::Unreadable { .. })) => {
                code::USAGE
            }
            _ if error.is::<UnreadableFile>()
                || error.is::<NoConfigFile>()
                || error.is::<selftest::UsageError>() =>
            {
                code::USAGE
            }
            _ => code::ERROR,
        };
        // A closed pipe is not reported: the reader has gone.
        let closed = error.downcast_ref().is_some_and(OutputError::is_broken_pipe);
        Self::new(code, if closed { String::new() } else { format!("{error:#}") })
    }
}

/// The output cannot be written.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let closed = error.kind() == std::io::ErrorKind::BrokenPipe;
        let text = if closed { String::new() } else { format!("the output cannot be written: {error}") };
        Self::new(code::ERROR, text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (code, text) = (code_of(&error), error.to_string());
        Self { cause: Some(Box::new(error)), ..Self::new(code, text) }
    }
}

fn code_of(error: &Error) -> u8 {
    match error {
        Error::Url { .. } | Error::OtherOrigin { .. } => code::USAGE,
        Error::Transport(_)
        | Error::Status(StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) => code::ERROR,
        Error::NoCard { .. } => code::NOT_FOUND,
        Error::Timeout => code::TIMEOUT,
        Error::Ended { .. } => code::TASK_FAILED,
        Error::Status(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => code::AUTH,
        Error::Status(StatusCode::NOT_FOUND | StatusCode::GONE) => code::NOT_FOUND,
        Error::Status(StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT) => code::TIMEOUT,
        Error::Protocol(error) => match error.kind {
            ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => code::AUTH,
            ErrorKind::TaskNotFound | ErrorKind::AgentDisabled | ErrorKind::NotFound => code::NOT_FOUND,
            ErrorKind::DeadlineExceeded => code::TIMEOUT,
            ErrorKind::Unavailable | ErrorKind::RateLimited => code::ERROR,
            _ => code::PROTOCOL,
        },
        _ => code::PROTOCOL,
    }
}

fn advice(error: &Error, given: &GivenFlags) -> Option<String> {
    let fixed = match error {
        Error::OtherOrigin { .. } => "if you trust that endpoint, call it directly with --dialect",
        Error::NoCard { .. } => "if this is an endpoint without a card, give its version with --dialect 1.0",
        Error::NoMethod { .. } => "it was added in A2A 1.0: try --dialect 1.0",
        Error::Status(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => return Some(credentials(given)),
        Error::Protocol(error) => match error.kind {
            ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => return Some(credentials(given)),
            ErrorKind::Unavailable | ErrorKind::RateLimited => "try again later",
            ErrorKind::VersionNotSupported => "try another --dialect: 1.0, 0.3 or draft",
            // If the card chose the dialect, another dialect does not have the method either.
            ErrorKind::MethodNotFound if given.dialect => "try it without --dialect",
            _ => return None,
        },
        _ => return None,
    };
    Some(fixed.to_owned())
}

fn credentials(given: &GivenFlags) -> String {
    let hint = match &given.required {
        Some(required) => format!("the agent requires {required}"),
        None => "give credentials with --bearer-env, --api-key-env or --header".to_owned(),
    };
    match given.credentials.as_slice() {
        [] => hint,
        flags => {
            let refused = format!("access was denied with {}", flags.join(" and "));
            let is_known = given.required.is_some();
            if given.has_credential && !is_known { refused } else { format!("{refused}; {hint}") }
        }
    }
}

/// The exit code for the state of a task.
pub(crate) fn code_of_state(state: TaskState) -> u8 {
    match state {
        TaskState::Failed | TaskState::Canceled | TaskState::Rejected => code::TASK_FAILED,
        TaskState::InputRequired | TaskState::AuthRequired => code::TASK_WAITS,
        _ => code::SUCCESS,
    }
}
