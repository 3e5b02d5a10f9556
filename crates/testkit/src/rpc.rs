//! A client for A2A 1.0 over JSON-RPC: one call or one stream at a time, each with a time limit.
//!
//! It distinguishes what a checker must distinguish: a result, an error from the server, a lost connection, and a
//! response no client could use. Deliberately not here: retries, and checks of a result's content.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http1::{Connection, Headers};
use crate::{Error, LIMIT};

/// The page size and history of [`Caller::list`].
const PAGE: (u64, u64) = (100, 10);
const HEADERS: &[(&str, &str)] = &[("A2A-Version", "1.0")];
const REPLAYED: &str = "A2AD-Replayed";

/// The task does not exist, or not for this caller.
pub const TASK_NOT_FOUND: i64 = -32001;
/// The task has ended.
pub const TASK_NOT_CANCELABLE: i64 = -32002;
/// The operation does not apply to the task in its state.
pub const UNSUPPORTED_OPERATION: i64 = -32004;
/// A field of the request is missing or invalid.
pub const INVALID_PARAMS: i64 = -32602;
const UNAVAILABLE: i64 = -32000;

/// Calls the agents of one server over one connection, which is opened when needed.
pub struct Caller {
    address: SocketAddr,
    connection: Option<Connection>,
    last_id: u64,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The connection was lost; whether the call took effect is unknown.
    #[error("the connection was lost: {0}")]
    Cut(io::Error),
    /// The server returned an error.
    #[error("error {code} {reason}: {message}")]
    Error {
        /// The JSON-RPC code.
        code: i64,
        /// The reason in the error's `ErrorInfo` detail; empty if there is none.
        reason: String,
        /// The text.
        message: String,
    },
    /// The server returned something no client could use, or did not respond in time.
    #[error("unusable response: {0}")]
    Unusable(String),
}

/// The frames of one stream, in order.
pub struct Frames {
    /// Whether the server marked the message as already known (header `A2AD-Replayed`).
    pub replayed: bool,
    connection: Connection,
    id: u64,
}

/// A result, and whether the server marked the message as already known.
pub struct Reply {
    /// The JSON-RPC result.
    pub result: Value,
    /// The header `A2AD-Replayed`.
    pub replayed: bool,
}

/// One frame: its sequence number, if any, and the JSON-RPC result in it.
pub struct Frame {
    /// From the `id:` line.
    pub seq: Option<u64>,
    /// The JSON-RPC result.
    pub result: Value,
}

impl Caller {
    /// A caller without a connection.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, connection: None, last_id: 0 }
    }

    /// Calls a method and returns its result.
    pub async fn call(&mut self, agent: &str, method: &str, params: Value) -> Result<Value, Failure> {
        Ok(self.call_with(&[], agent, method, params).await?.result)
    }

    /// A call with additional headers.
    pub async fn call_with(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Reply, Failure> {
        let (id, body) = self.request(method, &params);
        let response = limited(async {
            let mut connection = match self.connection.take() {
                Some(connection) => connection,
                None => Connection::open(self.address).await?,
            };
            let response = connection.post_json(&path(agent), &with(headers), &body).await?;
            // Kept only after a complete response: a connection that failed is never reused.
            self.connection = Some(connection);
            Ok(response)
        });
        let response = response.await?;
        Ok(Reply { result: result_of(&response.body, id)?, replayed: is_replayed(&response.headers) })
    }

    /// Reads a task; `None` if it is unknown.
    pub async fn get(&mut self, agent: &str, id: &str) -> Result<Option<Value>, Failure> {
        match self.call(agent, "GetTask", json!({"id": id})).await {
            Ok(task) => Ok(Some(task)),
            Err(Failure::Error { code: TASK_NOT_FOUND, .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads all pages of a list and returns the total given by the last page.
    pub async fn list(
        &mut self,
        agent: &str,
        filter: Value,
        mut each: impl FnMut(Value),
    ) -> Result<u64, Failure> {
        let mut params = filter;
        (params["pageSize"], params["historyLength"]) = (PAGE.0.into(), PAGE.1.into());
        loop {
            let mut page = self.call(agent, "ListTasks", params.clone()).await?;
            let unusable = |page: &Value| Failure::Unusable(format!("invalid page: {page}"));
            let total = page["totalSize"].as_u64().ok_or_else(|| unusable(&page))?;
            let token = page["nextPageToken"].as_str().ok_or_else(|| unusable(&page))?.to_owned();
            let Value::Array(tasks) = page["tasks"].take() else { return Err(unusable(&page)) };
            // An empty page with a next page token would make this loop endless.
            if tasks.is_empty() && !token.is_empty() {
                return Err(unusable(&page));
            }
            tasks.into_iter().for_each(&mut each);
            if token.is_empty() {
                return Ok(total);
            }
            params["pageToken"] = token.into();
        }
    }

    /// Opens a stream on its own connection.
    pub async fn stream(&mut self, agent: &str, method: &str, params: Value) -> Result<Frames, Failure> {
        self.stream_with(&[], agent, method, params).await
    }

    /// A stream with additional headers, such as `Last-Event-ID`.
    pub async fn stream_with(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Frames, Failure> {
        let (id, body) = self.request(method, &params);
        limited(async {
            let mut connection = Connection::open(self.address).await?;
            connection.send_json(&path(agent), &with(headers), &body).await?;
            let head = connection.head().await?;
            if !head.is_event_stream() {
                result_of(&connection.body().await?, id)?;
                return Err(Failure::Unusable("a single result instead of a stream".to_owned()));
            }
            Ok(Frames { replayed: is_replayed(&head.headers), connection, id })
        })
        .await
    }

    /// Sends a call on its own connection and resets it after `after_bytes` of the response, which is not evaluated.
    pub async fn call_and_reset(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
        after_bytes: usize,
    ) -> Result<(), Failure> {
        let (_, body) = self.request(method, &params);
        limited(async {
            let mut connection = Connection::open(self.address).await?;
            connection.send_json(&path(agent), &with(headers), &body).await?;
            let mut left = after_bytes;
            while left > 0 {
                match connection.read_some(left).await? {
                    Some(bytes) => left -= bytes.len(),
                    None => break,
                }
            }
            Ok(connection.reset()?)
        })
        .await
    }

    fn request(&mut self, method: &str, params: &Value) -> (u64, Vec<u8>) {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        (self.last_id, request.to_string().into_bytes())
    }
}

impl Frames {
    /// The first frame, which every stream has.
    pub async fn first(&mut self) -> Result<Frame, Failure> {
        self.next().await?.ok_or_else(|| Failure::Unusable("the stream is empty".to_owned()))
    }

    /// The next frame, or `None` when the server has ended the stream properly.
    pub async fn next(&mut self) -> Result<Option<Frame>, Failure> {
        limited(async {
            let Some(event) = self.connection.event().await? else { return Ok(None) };
            let result = result_of(event.data.as_bytes(), self.id)?;
            Ok(Some(Frame { seq: event.id.and_then(|id| id.parse().ok()), result }))
        })
        .await
    }
}

impl Failure {
    /// Whether the server is temporarily unavailable and the call may be retried.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Error { code: UNAVAILABLE, .. })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Cut(cause) => Self::Cut(cause),
            other => Self::Unusable(other.to_string()),
        }
    }
}

/// The parameters of `SendMessage` for one text.
pub fn message(id: impl fmt::Display + Copy, text: &str, return_immediately: bool) -> Value {
    json!({
        "message": {"messageId": id.to_string(), "role": "ROLE_USER", "parts": [{"text": text}]},
        "configuration": {"returnImmediately": return_immediately}
    })
}

async fn limited<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match timeout(LIMIT, work).await {
        Ok(result) => result,
        Err(_) => Err(Failure::Unusable(format!("no response within {LIMIT:?}"))),
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
