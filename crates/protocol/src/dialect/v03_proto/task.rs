//! Tasks, their status and artifacts.

use crate::{
    Json, Task, TaskState, TaskStatus,
    dialect::{
        legacy::{carrier, time},
        proto_json,
    },
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

use super::{Form, message};

/// Names and numbers of the states. The second spelling of canceled is from the newer protobuf file.
const STATES: [(&str, i32, TaskState); 10] = [
    ("TASK_STATE_UNSPECIFIED", 0, TaskState::Unspecified),
    ("TASK_STATE_SUBMITTED", 1, TaskState::Submitted),
    ("TASK_STATE_WORKING", 2, TaskState::Working),
    ("TASK_STATE_COMPLETED", 3, TaskState::Completed),
    ("TASK_STATE_FAILED", 4, TaskState::Failed),
    ("TASK_STATE_CANCELLED", 5, TaskState::Canceled),
    ("TASK_STATE_INPUT_REQUIRED", 6, TaskState::InputRequired),
    ("TASK_STATE_REJECTED", 7, TaskState::Rejected),
    ("TASK_STATE_AUTH_REQUIRED", 8, TaskState::AuthRequired),
    ("TASK_STATE_CANCELED", 5, TaskState::Canceled),
];
const STATE: &str = "a task state such as TASK_STATE_WORKING";

/// The name of a state in this dialect.
pub fn state_name(state: TaskState) -> &'static str {
    STATES.iter().find(|row| row.2 == state).map_or("TASK_STATE_UNSPECIFIED", |row| row.0)
}

/// Reads the state of a filter by name or number; it must be a known one.
pub fn decode_state(node: Node<'_, '_>) -> Read<TaskState> {
    node.one_of(STATE, &STATES)
}

/// Reads a task.
pub fn decode(node: Node<'_, '_>) -> Read<Task> {
    let object = node.object()?;
    let (status, unknown_state) = object.need("status", "a task status", decode_status)?;
    Ok(Task {
        id: object.need_text("id")?.into(),
        context_id: object.text_or_empty("contextId")?.into(),
        status,
        // Chunks were appended over time, so the limit per chunk does not apply; the size of a task is
        // limited instead.
        artifacts: object.list("artifacts", |node| proto_json::decode_artifact::<Form>(node, usize::MAX))?,
        history: object.list("history", message::decode)?,
        metadata: with_unknown_state(object.json_object("metadata")?, unknown_state),
        created_at: None,
    })
}

/// Writes a task, omitting empty members.
pub fn encode(writer: &mut Writer, task: &Task) {
    encode_listed(writer, task, !task.artifacts.is_empty());
}

/// Writes a task of a list: `artifacts` always present, even if empty, or never.
pub fn encode_listed(writer: &mut Writer, task: &Task, with_artifacts: bool) {
    proto_json::encode_task::<Form>(writer, task, with_artifacts);
}

/// Reads a status. An unknown state becomes `Unspecified` and its name is returned beside it.
pub(super) fn decode_status(node: Node<'_, '_>) -> Read<(TaskStatus, Option<String>)> {
    let object = node.object()?;
    let (state, unknown_state) = object.need("state", STATE, decode_foreign_state)?;
    let message = match object.maybe("message", message::decode)? {
        None => object.maybe("update", message::decode)?,
        named => named,
    };
    Ok((TaskStatus { state, message, timestamp: object.maybe("timestamp", time::decode)? }, unknown_state))
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

/// The metadata with an unknown state name added, so that it is not lost.
pub(super) fn with_unknown_state(metadata: Option<Json>, unknown_state: Option<String>) -> Option<Json> {
    match unknown_state {
        Some(unknown_state) => {
            carrier::with_carried(metadata.as_ref(), |writer| writer.text("state", &unknown_state))
        }
        None => metadata,
    }
}

fn decode_foreign_state(node: Node<'_, '_>) -> Read<(TaskState, Option<String>)> {
    match decode_state(node) {
        Ok(state) => Ok((state, None)),
        Err(_) if node.text().starts_with('"') => {
            Ok((TaskState::Unspecified, Some(node.string()?.into_owned())))
        }
        Err(violation) => Err(violation),
    }
}
