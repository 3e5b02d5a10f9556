//! The test client: calls to one agent, message builders, and helpers that read responses and events.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;

use super::{
    CheckError, CheckResult,
    http::{Event, Events, Headers, Response, Server},
    json::{ValueChecks as _, quote},
    mismatch,
};

/// Calls one skill of an agent at one path of a server.
#[derive(Clone, Debug)]
pub(crate) struct TestClient {
    pub(crate) server: Server,
    pub(crate) path: String,
    pub(crate) skill: &'static str,
    /// Headers of every request, such as credentials.
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl TestClient {
    pub(crate) fn new(server: &Server, path: impl Into<String>, skill: &'static str) -> Self {
        let headers = Vec::new();
        Self { server: server.clone(), path: path.into(), skill, headers }
    }

    /// The same path with another skill.
    pub(crate) fn with_skill(&self, skill: &'static str) -> Self {
        Self { skill, ..self.clone() }
    }

    /// The same with an additional header in every request.
    pub(crate) fn with_header(&self, name: &'static str, value: impl Into<String>) -> Self {
        let headers = self.headers.iter().cloned().chain([(name, value.into())]).collect();
        Self { headers, ..self.clone() }
    }

    pub(crate) async fn post(&self, body: &str) -> Result<Response, CheckError> {
        let own = [("content-type", "application/json")];
        let headers = self.headers_with(&own);
        self.server.send_request("POST", &self.path, &headers, body).await
    }

    fn headers_with<'a>(&'a self, more: Headers<'a>) -> Vec<(&'a str, &'a str)> {
        let own = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        own.chain(more.iter().copied()).collect()
    }

    pub(crate) async fn call(&self, method: &str, params: &str) -> Result<Response, CheckError> {
        self.post(&request(method, params)).await
    }

    /// Calls a method that responds with an event stream.
    pub(crate) async fn stream(&self, method: &str, params: &str) -> Result<Events, CheckError> {
        self.stream_with(&[], method, params).await
    }

    /// Like [`Self::stream`], with additional request headers.
    pub(crate) async fn stream_with(
        &self,
        headers: Headers<'_>,
        method: &str,
        params: &str,
    ) -> Result<Events, CheckError> {
        let headers = self.headers_with(headers);
        self.server.stream(&self.path, &headers, &request(method, params)).await
    }

    /// The parameters of the draft's `tasks/send`; `more` is appended as further members.
    pub(crate) fn params(&self, task: &str, message: &str, more: &str) -> String {
        let (task, skill) = (quote(task), quote(self.skill));
        format!(r#"{{"id":{task},"skill":{skill},"message":{message}{more}}}"#)
    }

    /// Sends a message to a task with the draft's `tasks/send`.
    pub(crate) async fn send(&self, task: &str, message: &str, more: &str) -> Result<Response, CheckError> {
        self.call("tasks/send", &self.params(task, message, more)).await
    }

    /// Sends a text as a new task and returns the task's id with the response.
    pub(crate) async fn send_text(&self, input: &str) -> Result<(String, Response), CheckError> {
        let task = unique_id();
        let response = self.send(&task, &text(input), "").await?;
        Ok((task, response))
    }

    /// Like [`Self::send_text`], but the server responds without waiting for the task to finish.
    pub(crate) async fn send_async(&self, input: &str) -> Result<(String, Response), CheckError> {
        let task = unique_id();
        let response = self.send(&task, &text(input), r#","async":true"#).await?;
        Ok((task, response))
    }

    /// Sends a text as a new task with `tasks/sendSubscribe` and returns all events up to the end of the stream.
    pub(crate) async fn events(&self, input: &str) -> Result<(String, Vec<Event>), CheckError> {
        let task = unique_id();
        let params = self.params(&task, &text(input), "");
        let events = self.stream("tasks/sendSubscribe", &params).await?.all().await?;
        Ok((task, events))
    }

    pub(crate) async fn get(&self, task: &str) -> Result<Response, CheckError> {
        self.call("tasks/get", &format!(r#"{{"id":{}}}"#, quote(task))).await
    }

    pub(crate) async fn cancel(&self, task: &str) -> Result<Response, CheckError> {
        self.call("tasks/cancel", &format!(r#"{{"id":{}}}"#, quote(task))).await
    }

    /// Sends parts with `message/send` of 0.3; `more` is appended as further parameters.
    pub(crate) async fn message(&self, parts: &str, more: &str) -> Result<Response, CheckError> {
        self.call("message/send", &self.message_params(parts, "", more)).await
    }

    /// Sends a short text with `message/send` of 0.3.
    pub(crate) async fn hello(&self) -> Result<Response, CheckError> {
        self.message(&text_part("hello"), "").await
    }

    /// The parameters of `message/send` of 0.3; `message_members` is appended to the message, `more` to the parameters.
    pub(crate) fn message_params(&self, parts: &str, message_members: &str, more: &str) -> String {
        let (id, skill) = (quote(&unique_id()), quote(self.skill));
        format!(
            r#"{{"message":{{"kind":"message","messageId":{id},"role":"user","parts":{parts}{message_members}}},"skill":{skill}{more}}}"#
        )
    }

    /// Polls a task every 25 ms until `holds` is true, for at most 10 seconds.
    pub(crate) async fn poll_until(
        &self,
        task: &str,
        expected: &str,
        holds: impl Fn(&Response) -> bool,
    ) -> Result<Response, CheckError> {
        const TIMEOUT: Duration = Duration::from_secs(10);
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        loop {
            let response = self.get(task).await?;
            if holds(&response) {
                return Ok(response);
            }
            if tokio::time::Instant::now() > deadline {
                return Err(mismatch(format!("{expected} within {} seconds", TIMEOUT.as_secs()), response));
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Polls a task until it is in this state.
    pub(crate) async fn poll_until_state(&self, task: &str, state: &str) -> Result<Response, CheckError> {
        self.poll_until(task, &format!("state {state}"), |response| {
            response.is("result.status.state", state).is_ok()
        })
        .await
    }
}

/// A JSON-RPC request.
pub(crate) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":{},"params":{params}}}"#, quote(method))
}

/// A message of the draft with one text part.
pub(crate) fn text(text: &str) -> String {
    format!(r#"{{"role":"user","parts":[{{"type":"text","text":{}}}]}}"#, quote(text))
}

/// A part list of 0.3 with one text part.
pub(crate) fn text_part(text: &str) -> String {
    format!(r#"[{{"kind":"text","text":{}}}]"#, quote(text))
}

/// An id that is unique across runs.
pub(crate) fn unique_id() -> String {
    static RUN: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one("run"));
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("acceptance-{:x}-{}", *RUN, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The states of the status events, in order, with repetitions.
pub(crate) fn states(events: &[Event]) -> Vec<&str> {
    events.iter().filter_map(|event| event.data.text("result.status.state").ok()).collect()
}

/// Whether the work of a task shows progress: a part of its result, or a text in its status.
pub(crate) fn has_begun(task: &Response) -> bool {
    task.count("result.artifacts") > 0 || task.text("result.status.message.parts.0.text").is_ok()
}

/// The texts of all parts at a path, as one text: a tool may return it in pieces or as a whole.
pub(crate) fn joined(response: &Response, path: &str) -> Result<String, CheckError> {
    response.list(path)?.iter().map(|part| part.text("text")).collect()
}

/// Checks that the only artifact has the sections of a text that the skill slow-writer has written about the sea.
pub(crate) fn has_sections(task: &Response, count: usize) -> CheckResult {
    task.ensure(task.count("result.artifacts") == 1, "one artifact")?;
    let section = |number| format!("Section {number} of {count}: more about the sea.\n");
    let all: String = (1..=count).map(section).collect();
    task.ensure(joined(task, "result.artifacts.0.parts")? == all, "every section exactly once")
}

/// Checks that the last event, and only the last one, has `final: true`.
pub(crate) fn ends_with_final(events: &[Event]) -> CheckResult {
    let all = || Value::Array(events.iter().map(|event| event.data.clone()).collect());
    let Some((last, before)) = events.split_last() else { return Err(mismatch("events", "none")) };
    all().ensure(last.data.is("result.final", true).is_ok(), "the last event to be final")?;
    let early = before.iter().any(|event| event.data.is("result.final", true).is_ok());
    all().ensure(!early, "only the last event to be final")
}
