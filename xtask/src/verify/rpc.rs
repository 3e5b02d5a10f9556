//! A2A 1.0 over JSON-RPC as the harness speaks it: one call or one stream at a time, each with a time limit.
//!
//! It keeps apart what the oracle must keep apart: an answer, an error the server gave, a cut connection, and
//! an answer no client could use. Deliberately not here: retries, and any opinion about the answer's content.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::{self, Connection, Events, Headers, Reply};

/// Longer than any honest answer takes, so that a hang becomes a finding and not a stuck run.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
const HEADERS: &[(&str, &str)] = &[("A2A-Version", "1.0")];
const REPLAYED: &str = "A2AD-Replayed";

pub(crate) const TASK_NOT_FOUND: i64 = -32001;
pub(crate) const TASK_NOT_CANCELABLE: i64 = -32002;
pub(crate) const UNSUPPORTED_OPERATION: i64 = -32004;
pub(crate) const INVALID_PARAMS: i64 = -32602;
const UNAVAILABLE: i64 = -32000;

/// Calls the agents of one server over one connection, which is opened when needed.
pub(crate) struct Caller {
    address: SocketAddr,
    connection: Option<Connection>,
    last_id: u64,
}

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection broke; whether the call took effect is unknown.
    Cut(io::Error),
    /// The server answered with an error.
    Error { code: i64, reason: String, message: String },
    /// The server answered with something no client could use, or not at all.
    Unusable(String),
}

/// The frames of one stream.
pub(crate) struct Frames {
    /// Whether the server says that the message was known to it already.
    pub(crate) replayed: bool,
    events: Events,
    id: u64,
}

/// A result, and whether the server says that the message was known to it already.
pub(crate) struct Told {
    pub(crate) result: Value,
    pub(crate) replayed: bool,
}

/// One frame: its number, if it has one, and the JSON-RPC result in it.
pub(crate) struct Frame {
    pub(crate) seq: Option<u64>,
    pub(crate) result: Value,
}

impl Caller {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, connection: None, last_id: 0 }
    }

    pub(crate) async fn call(&mut self, agent: &str, method: &str, params: Value) -> Result<Value, Failure> {
        Ok(self.call_with(&[], agent, method, params).await?.result)
    }

    /// A call with headers of its own.
    pub(crate) async fn call_with(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Told, Failure> {
        limited(self.call_unlimited(headers, agent, method, params)).await
    }

    /// Opens a stream on a connection of its own.
    pub(crate) async fn stream(
        &mut self,
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Frames, Failure> {
        self.stream_with(&[], agent, method, params).await
    }

    /// A stream with headers of its own, such as `Last-Event-ID`.
    pub(crate) async fn stream_with(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Frames, Failure> {
        limited(self.stream_unlimited(headers, agent, method, params)).await
    }

    /// Asks on a connection of its own and resets it after that much of the answer, which nobody learns.
    pub(crate) async fn ask_and_reset(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
        after_bytes: usize,
    ) -> Result<(), Failure> {
        let (_, body) = self.request(method, &params);
        limited(async {
            let connection = Connection::open(self.address).await?;
            Ok(connection.post_json_and_reset(&path(agent), &with(headers), &body, after_bytes).await?)
        })
        .await
    }

    async fn call_unlimited(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Told, Failure> {
        let (id, body) = self.request(method, &params);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        let answer = connection.post_json(&path(agent), &with(headers), &body).await?;
        // Kept only after a whole answer: a connection that failed is never used again.
        self.connection = Some(connection);
        Ok(Told { result: result_of(&answer.body, id)?, replayed: is_replayed(&answer.headers) })
    }

    async fn stream_unlimited(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Frames, Failure> {
        let (id, body) = self.request(method, &params);
        let connection = Connection::open(self.address).await?;
        match connection.post_json_for_events(&path(agent), &with(headers), &body).await? {
            Reply::Events(events) => Ok(Frames { replayed: is_replayed(&events.headers), events, id }),
            Reply::Answer(answer) => {
                result_of(&answer.body, id)?;
                Err(Failure::Unusable("a stream was asked for and a single result came".to_owned()))
            }
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> (u64, Vec<u8>) {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        (self.last_id, request.to_string().into_bytes())
    }
}

impl Frames {
    /// The next frame, or `None` when the server has ended the stream in good order.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, Failure> {
        limited(async {
            let Some(event) = self.events.next().await? else { return Ok(None) };
            let result = result_of(event.data.as_bytes(), self.id)?;
            Ok(Some(Frame { seq: event.id.and_then(|id| id.parse().ok()), result }))
        })
        .await
    }
}

impl Failure {
    /// Whether the server only asked to be left alone for a moment.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Error { code: UNAVAILABLE, .. })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(cause) => write!(f, "the connection was cut: {cause}"),
            Self::Error { code, reason, message } => write!(f, "error {code} {reason}: {message}"),
            Self::Unusable(what) => write!(f, "an answer no client can use: {what}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<http::Error> for Failure {
    fn from(error: http::Error) -> Self {
        match error {
            http::Error::Cut(cause) => Self::Cut(cause),
            http::Error::Malformed(_) => Self::Unusable(error.to_string()),
        }
    }
}

async fn limited<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match timeout(ANSWER_LIMIT, work).await {
        Ok(result) => result,
        Err(_) => Err(Failure::Unusable(format!("no answer within {ANSWER_LIMIT:?}"))),
    }
}

/// The headers of every request, and those of this one.
fn with<'a>(headers: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [HEADERS, headers].concat()
}

fn is_replayed(headers: &Headers) -> bool {
    headers.get(REPLAYED) == Some("true")
}

fn path(agent: &str) -> String {
    format!("/a2a/{agent}")
}

fn result_of(body: &[u8], id: u64) -> Result<Value, Failure> {
    let unusable = || Failure::Unusable(String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned());
    let mut answer: Value = serde_json::from_slice(body).map_err(|_| unusable())?;
    if let Some(error) = answer.get("error") {
        let code = error["code"].as_i64().ok_or_else(unusable)?;
        let message = error["message"].as_str().unwrap_or_default().to_owned();
        let reason = reason_of(&error["data"]);
        return Err(Failure::Error { code, reason, message });
    }
    if answer["jsonrpc"] != "2.0" || answer["id"] != id || !answer["result"].is_object() {
        return Err(unusable());
    }
    Ok(answer["result"].take())
}

/// The reason named by the error's `ErrorInfo`, which is one of its details.
fn reason_of(details: &Value) -> String {
    let mut reasons = details.as_array().into_iter().flatten().filter_map(|detail| detail["reason"].as_str());
    reasons.next().unwrap_or_default().to_owned()
}
