//! A client for A2A 1.0 over JSON-RPC: one call or one stream at a time, each with a time limit.
//!
//! It distinguishes what a checker must distinguish: a result, an error from the server, a lost connection, and a
//! response no client could use. Deliberately not here: retries, and checks of a result's content.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::{self, Connection, Events, Headers, StreamResponse};

/// Far longer than any response should take, so that a hang becomes a finding and does not block the run.
const RESPONSE_LIMIT: Duration = Duration::from_secs(30);
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
    /// The connection was lost; whether the call took effect is unknown.
    Cut(io::Error),
    /// The server returned an error.
    Error { code: i64, reason: String, message: String },
    /// The server returned something no client could use, or did not respond in time.
    Unusable(String),
}

pub(crate) struct Frames {
    /// Whether the server marked the message as already known (header `A2AD-Replayed`).
    pub(crate) replayed: bool,
    events: Events,
    id: u64,
}

/// A result, and whether the server marked the message as already known.
pub(crate) struct Reply {
    pub(crate) result: Value,
    pub(crate) replayed: bool,
}

/// One frame: its sequence number, if any, and the JSON-RPC result in it.
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

    /// A call with additional headers.
    pub(crate) async fn call_with(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Reply, Failure> {
        limited(self.call_unlimited(headers, agent, method, params)).await
    }

    /// Opens a stream on its own connection.
    pub(crate) async fn stream(
        &mut self,
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Frames, Failure> {
        self.stream_with(&[], agent, method, params).await
    }

    /// A stream with additional headers, such as `Last-Event-ID`.
    pub(crate) async fn stream_with(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Frames, Failure> {
        limited(self.stream_unlimited(headers, agent, method, params)).await
    }

    /// Sends a call on its own connection and resets it after `bytes` of the response, which is not evaluated.
    pub(crate) async fn call_and_reset(
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
    ) -> Result<Reply, Failure> {
        let (id, body) = self.request(method, &params);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        let response = connection.post_json(&path(agent), &with(headers), &body).await?;
        // Kept only after a complete response: a connection that failed is never reused.
        self.connection = Some(connection);
        Ok(Reply { result: result_of(&response.body, id)?, replayed: is_replayed(&response.headers) })
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
            StreamResponse::Events(events) => {
                Ok(Frames { replayed: is_replayed(&events.headers), events, id })
            }
            StreamResponse::Response(response) => {
                result_of(&response.body, id)?;
                Err(Failure::Unusable("a single result instead of a stream".to_owned()))
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
    /// The next frame, or `None` when the server has ended the stream properly.
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
    /// Whether the server is temporarily unavailable and the call may be retried.
    pub(crate) fn is_retryable(&self) -> bool {
        matches!(self, Self::Error { code: UNAVAILABLE, .. })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(cause) => write!(f, "the connection was lost: {cause}"),
            Self::Error { code, reason, message } => write!(f, "error {code} {reason}: {message}"),
            Self::Unusable(what) => write!(f, "unusable response: {what}"),
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
    match timeout(RESPONSE_LIMIT, work).await {
        Ok(result) => result,
        Err(_) => Err(Failure::Unusable(format!("no response within {RESPONSE_LIMIT:?}"))),
    }
}

/// The common headers and the given ones.
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
    let mut response: Value = serde_json::from_slice(body).map_err(|_| unusable())?;
    if let Some(error) = response.get("error") {
        let code = error["code"].as_i64().ok_or_else(unusable)?;
        let message = error["message"].as_str().unwrap_or_default().to_owned();
        let reason = reason_of(&error["data"]);
        return Err(Failure::Error { code, reason, message });
    }
    if response["jsonrpc"] != "2.0" || response["id"] != id || !response["result"].is_object() {
        return Err(unusable());
    }
    Ok(response["result"].take())
}

/// The reason in the error's `ErrorInfo` detail.
fn reason_of(details: &Value) -> String {
    let mut reasons = details.as_array().into_iter().flatten().filter_map(|detail| detail["reason"].as_str());
    reasons.next().unwrap_or_default().to_owned()
}
