//! The echo response of the bare servers in A2A 1.0: a completed task with one artifact, or the four events of a
//! stream.
//!
//! Only the shape and the size matter here, so ids come from a counter and the timestamp is constant; nothing is
//! stored and only the text is read.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::Value;

const TIMESTAMP: &str = "2026-01-02T03:04:05.678Z";

/// One request to echo, borrowed from its parsed body.
pub struct Echo<'a> {
    id: &'a Value,
    message: &'a Value,
    text: &'a str,
    task_id: String,
    context_id: String,
}

impl<'a> Echo<'a> {
    /// Finds the message of a JSON-RPC request; `None` if there is no text to echo.
    pub fn of(request: &'a Value) -> Option<Self> {
        static TASKS: AtomicU64 = AtomicU64::new(1);
        let message = request.get("params")?.get("message")?;
        let n = TASKS.fetch_add(1, Ordering::Relaxed);
        Some(Self {
            id: request.get("id")?,
            message,
            text: message.get("parts")?.get(0)?.get("text")?.as_str()?,
            // As long as the ids of a2ad: 18 bytes in base32.
            task_id: format!("task_{n:029x}"),
            context_id: format!("ctx_{n:029x}"),
        })
    }

    /// The completed task, as in the response to a blocking send.
    pub fn response(&self) -> Vec<u8> {
        self.encode(Event::Task(Task {
            id: &self.task_id,
            context_id: &self.context_id,
            status: status("TASK_STATE_COMPLETED"),
            artifacts: Some([self.artifact()]),
            history: [self.message],
        }))
    }

    /// The task, its working status, its artifact and its final status, as in a stream.
    pub fn events(&self) -> [Vec<u8>; 4] {
        let submitted = Event::Task(Task {
            id: &self.task_id,
            context_id: &self.context_id,
            status: status("TASK_STATE_SUBMITTED"),
            artifacts: None,
            history: [self.message],
        });
        let artifact = Event::ArtifactUpdate(ArtifactUpdate {
            task_id: &self.task_id,
            context_id: &self.context_id,
            artifact: self.artifact(),
            last_chunk: true,
        });
        [
            submitted,
            self.status_update("TASK_STATE_WORKING"),
            artifact,
            self.status_update("TASK_STATE_COMPLETED"),
        ]
        .map(|event| self.encode(event))
    }

    fn status_update(&self, state: &'static str) -> Event<'_> {
        Event::StatusUpdate(StatusUpdate {
            task_id: &self.task_id,
            context_id: &self.context_id,
            status: status(state),
        })
    }

    fn artifact(&self) -> Artifact<'_> {
        Artifact { artifact_id: "echo-result", name: "echo-result", parts: [Part { text: self.text }] }
    }

    fn encode(&self, event: Event<'_>) -> Vec<u8> {
        let response = JsonRpcResponse { jsonrpc: "2.0", id: self.id, result: event };
        serde_json::to_vec(&response).expect("a struct of strings can be serialized as JSON")
    }
}

fn status(state: &'static str) -> Status {
    Status { state, timestamp: TIMESTAMP }
}

#[derive(Serialize)]
struct JsonRpcResponse<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: Event<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Event<'a> {
    Task(Task<'a>),
    StatusUpdate(StatusUpdate<'a>),
    ArtifactUpdate(ArtifactUpdate<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    id: &'a str,
    context_id: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifacts: Option<[Artifact<'a>; 1]>,
    history: [&'a Value; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusUpdate<'a> {
    task_id: &'a str,
    context_id: &'a str,
    status: Status,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactUpdate<'a> {
    task_id: &'a str,
    context_id: &'a str,
    artifact: Artifact<'a>,
    last_chunk: bool,
}

#[derive(Serialize)]
struct Status {
    state: &'static str,
    timestamp: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact<'a> {
    artifact_id: &'static str,
    name: &'static str,
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
}
