//! Encodes requests as bytes, and extracts a few values from responses.
//!
//! A response is searched, not parsed: the load generator shares the machine with the server it measures. It searches
//! for names and values that A2A 1.0 encodes in one way only.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use memchr::memmem;

use crate::client::{Connection, Response};

/// The endpoint of an agent.
#[derive(Clone)]
pub struct AgentEndpoint {
    /// Socket address of the server.
    pub address: SocketAddr,
    /// URL path of the agent, or for gRPC its tenant.
    pub path: String,
}

impl AgentEndpoint {
    /// A JSON-RPC call of `method`; `headers` are complete lines, each with its line end.
    pub fn request(&self, headers: &str, method: &str, params: &str) -> Vec<u8> {
        let mut request = Vec::new();
        self.write_request(&mut request, headers, method, params);
        request
    }

    /// The same, replacing the content of `into`.
    pub fn write_request(&self, into: &mut Vec<u8>, headers: &str, method: &str, params: &str) {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        into.clear();
        into.extend_from_slice(self.post("", "application/json", headers, &body).as_bytes());
    }

    /// An HTTP+JSON call at `path` below the agent's.
    pub fn rest_request(&self, path: &str, body: &str) -> Vec<u8> {
        self.post(path, "application/a2a+json", "", body).into_bytes()
    }

    fn post(&self, below: &str, content_type: &str, headers: &str, body: &str) -> String {
        let Self { address, path } = self;
        let length = body.len();
        format!(
            "POST {path}{below} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {content_type}\r\nA2A-Version: 1.0\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
    }

    /// Starts a task with `text` and returns its id without waiting for its end.
    pub async fn start_task(&self, text: &str) -> Result<String> {
        let id = uuid::Builder::from_random_bytes(fastrand::u128(..).to_ne_bytes()).into_uuid();
        let params = format!(
            r#"{{"message":{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}},"configuration":{{"returnImmediately":true}}}}"#
        );
        let mut connection = Connection::open(self.address).await?;
        let response = connection.exchange(&self.request("", "SendMessage", &params)).await?;
        check_success(&response)?;
        task_id(response.body).with_context(|| format!("no task: {}", excerpt(response.body)))
    }

    /// The timestamps of the current statuses of some tasks.
    pub async fn status_times(&self, tasks: &[String]) -> Result<Vec<String>> {
        let mut connection = Connection::open(self.address).await?;
        let mut times = Vec::with_capacity(tasks.len());
        for task in tasks {
            let request = self.request("", "GetTask", &format!(r#"{{"id":"{task}"}}"#));
            let response = connection.exchange(&request).await?;
            check_success(&response)?;
            let time = string_after(response.body, b"\"timestamp\":\"");
            times.push(time.with_context(|| format!("no time: {}", excerpt(response.body)))?);
        }
        Ok(times)
    }

    /// Cancels a task.
    pub async fn cancel_task(&self, task: &str) -> Result<()> {
        let mut connection = Connection::open(self.address).await?;
        let params = format!(r#"{{"id":"{task}"}}"#);
        check_success(&connection.exchange(&self.request("", "CancelTask", &params)).await?)
    }

    /// The request for a task's stream: with `after`, of the events after that sequence number.
    pub fn subscription(&self, task: &str, after: Option<u64>) -> Vec<u8> {
        let header = after.map(|number| format!("Last-Event-ID: {number}\r\n")).unwrap_or_default();
        self.request(&header, "SubscribeToTask", &format!(r#"{{"id":"{task}"}}"#))
    }
}

/// Rejects a response that is not a result.
pub fn check_success(response: &Response<'_>) -> Result<()> {
    let result = response.status == 200 && memmem::find(response.body, b"\"result\":").is_some();
    ensure!(result, "status {}: {}", response.status, excerpt(response.body));
    Ok(())
}

/// The id of the task in the response to a send.
pub fn task_id(body: &[u8]) -> Option<String> {
    string_after(body, b"\"task\":{\"id\":\"").filter(|id| !id.is_empty())
}

/// The text from `mark` to the next quotation mark; none of the requested values contains one.
pub fn string_after(body: &[u8], mark: &[u8]) -> Option<String> {
    let rest = &body[memmem::find(body, mark)? + mark.len()..];
    let text = &rest[..memchr::memchr(b'"', rest)?];
    std::str::from_utf8(text).ok().map(str::to_owned)
}

/// The beginning of a response, for an error message.
pub fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned()
}
