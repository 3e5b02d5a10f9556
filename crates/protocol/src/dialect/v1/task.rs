//! Tasks, their status and artifacts.

use crate::{
    Artifact, Error, ErrorKind, Task, TaskState, TaskStatus,
    dialect::proto_json,
    json::{
        Raw,
        read::{Node, Path, Read},
        write::Writer,
    },
};

use super::{Form, message};

/// Names and numbers of the states. The second spelling of canceled is from the older protobuf file.
const STATES: [(&str, i32, TaskState); 10] = [
    ("TASK_STATE_UNSPECIFIED", 0, TaskState::Unspecified),
    ("TASK_STATE_SUBMITTED", 1, TaskState::Submitted),
    ("TASK_STATE_WORKING", 2, TaskState::Working),
    ("TASK_STATE_COMPLETED", 3, TaskState::Completed),
    ("TASK_STATE_FAILED", 4, TaskState::Failed),
    ("TASK_STATE_CANCELED", 5, TaskState::Canceled),
    ("TASK_STATE_INPUT_REQUIRED", 6, TaskState::InputRequired),
    ("TASK_STATE_REJECTED", 7, TaskState::Rejected),
    ("TASK_STATE_AUTH_REQUIRED", 8, TaskState::AuthRequired),
    ("TASK_STATE_CANCELLED", 5, TaskState::Canceled),
];

/// The name of a state in this dialect.
pub fn state_name(state: TaskState) -> &'static str {
    STATES.iter().find(|row| row.2 == state).map_or("TASK_STATE_UNSPECIFIED", |row| row.0)
}

/// Reads a state by name or number.
pub fn decode_state(node: Node<'_, '_>) -> Read<TaskState> {
    node.one_of("a task state such as TASK_STATE_WORKING", &STATES)
}

/// Reads a task.
pub fn decode(node: Node<'_, '_>) -> Read<Task> {
    let object = node.object()?;
    Ok(Task {
        id: object.need_text("id")?.into(),
        context_id: object.text_or_empty("contextId")?.into(),
        status: object.need("status", "a task status", decode_status)?,
        // Chunks were appended over time, so the limit per chunk does not apply; the size of a task is
        // limited instead.
        artifacts: object.list("artifacts", decode_folded_artifact)?,
        history: object.list("history", message::decode)?,
        metadata: object.json_object("metadata")?,
        created_at: None,
    })
}

/// Reads a task from text.
pub fn decode_str(text: &str) -> Result<Task, Error> {
    let raw = Raw::parse_text(text)
        .map_err(|fault| Error::new(ErrorKind::Parse, format!("the task is not JSON: {fault}")))?;
    Ok(decode(Node::new(raw, &Path::Root))?)
}

/// Writes a task, omitting empty members.
pub fn encode(writer: &mut Writer, task: &Task) {
    encode_listed(writer, task, !task.artifacts.is_empty());
}

/// Writes a task of a list: `artifacts` always present, even if empty, or never.
pub fn encode_listed(writer: &mut Writer, task: &Task, with_artifacts: bool) {
    proto_json::encode_task::<Form>(writer, task, with_artifacts);
}

/// Reads a status.
pub(super) fn decode_status(node: Node<'_, '_>) -> Read<TaskStatus> {
    let object = node.object()?;
    Ok(TaskStatus {
        state: object.need("state", "a task state such as TASK_STATE_WORKING", decode_state)?,
        message: object.maybe("message", message::decode)?,
        timestamp: object.maybe("timestamp", |node| node.timestamp())?,
    })
}

/// Writes a status.
pub(super) fn encode_status(writer: &mut Writer, status: &TaskStatus) {
    writer.object(|writer| {
        writer.text("state", state_name(status.state));
        if let Some(message) = &status.message {
            message::encode(writer.key("message"), message);
        }
        if let Some(timestamp) = status.timestamp {
            writer.text("timestamp", &timestamp.to_string());
        }
    });
}

/// Reads an artifact that was folded from any number of chunks.
pub fn decode_folded_artifact(node: Node<'_, '_>) -> Read<Artifact> {
    proto_json::decode_artifact::<Form>(node, usize::MAX)
}

/// Writes an artifact.
pub fn encode_artifact(writer: &mut Writer, artifact: &Artifact) {
    proto_json::encode_artifact::<Form>(writer, artifact);
}
