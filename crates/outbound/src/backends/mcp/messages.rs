//! What an MCP server sends about a call, in our own types.

use std::{fmt, time::Duration};

use protocol::{Json, error::excerpt};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::backend::Reply;

/// How a server answered a call.
#[derive(Debug)]
pub(crate) enum Response {
    /// The tool has ended, with a result or with an error of its own.
    Complete(Reply),
    /// The call is to be sent again with the client's answers.
    InputRequired(InputRequired),
    /// The tool runs on; its result is polled for.
    Task(RemoteTask),
}

#[derive(Debug)]
pub(crate) struct InputRequired {
    pub(crate) requests: Requests,
    /// To be sent back as it is.
    pub(crate) state: Option<String>,
}

/// What a server asks, each under a key that it chose.
pub(crate) type Requests = Vec<(String, Question)>;

/// A task in the MCP server.
#[derive(Debug)]
pub(crate) struct RemoteTask {
    pub(crate) id: String,
    pub(crate) poll_interval: Duration,
}

/// The state of a task in the MCP server.
#[derive(Debug)]
pub(crate) enum TaskUpdate {
    Working { message: Option<String>, poll_interval: Duration },
    Asks(Requests),
    Ended(Result<Reply, CallError>),
    Cancelled,
}

/// Something that a server asks the client for. Kept in the state of a waiting task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Question {
    /// Values that the schema describes.
    Form { message: String, schema: Box<RawValue> },
    /// A page on which the client does something that must not pass through us, such as a login.
    Url { message: String, url: String },
    /// A kind of request that we do not advertise.
    Unsupported,
}

/// The client's answer to a [`Question`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// With the values for a form.
    Accept(Option<Json>),
    Decline,
    Cancel,
}

/// Answers to what the server asked in its last response, and the state that came with it.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    pub(crate) answers: Vec<(String, Answer)>,
    pub(crate) state: Option<String>,
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The server answered with an error.
    Server { code: i32, message: String, data: Option<Json> },
    /// The server requires credentials; what it wants is in the challenge.
    Auth { challenge: String },
    /// The server answered with this HTTP status.
    Http { status: u16 },
    /// The call did not reach the server.
    NotSent,
    /// The connection ended before the answer.
    Closed,
    /// A tool takes only an object.
    NotAnObject,
    /// The client has sent this argument, which is for the message.
    MessageArgument(String),
    /// The answer is not a valid one; what is wrong with it.
    Invalid(String),
}

impl fmt::Display for CallError {
    /// For the log.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { code, message, .. } => {
                write!(out, "it answered with the error {code}: {}", excerpt(message))
            }
            Self::Auth { .. } => out.write_str("it requires credentials"),
            Self::Http { status } => write!(out, "it answered with HTTP status {status}"),
            Self::NotSent => out.write_str("it did not receive the request"),
            Self::Closed => out.write_str("the connection ended before the answer"),
            Self::NotAnObject => out.write_str("the arguments are no object"),
            Self::MessageArgument(name) => {
                write!(out, "the client has sent the argument {}, which is for the message", excerpt(name))
            }
            Self::Invalid(problem) => out.write_str(problem),
        }
    }
}

/// A notice of progress.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Progress {
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<String>,
}
