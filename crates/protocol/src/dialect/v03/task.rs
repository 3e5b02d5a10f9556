//! Tasks, their status and artifacts.

use crate::{
    Artifact, Json, Task, TaskState, TaskStatus,
    dialect::{
        Style,
        legacy::{
            carrier, enums,
            part::{self, Tag},
            state, time,
        },
        v1::message::MAX_PARTS,
    },
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
};

use super::message;

/// The name of a state in this dialect.
pub fn state_name(state: TaskState) -> &'static str {
    enums::state(state, Style::default())
}

/// Reads a task.
pub fn decode(node: Node<'_, '_>) -> Read<Task> {
    let object = node.object()?;
    message::decode_kind(&object, "task")?;
    let id = object.need_text("id")?.into();
    let (status, metadata) = decode_status_and_metadata(&object)?;
    Ok(Task {
        id,
        context_id: object.text_or_empty("contextId")?.into(),
        status,
        // Chunks were appended over time, so the limit per chunk does not apply; the size of a task is
        // limited instead.
        artifacts: object.list("artifacts", |node| decode_parts_of(node, usize::MAX))?,
        history: object.list("history", message::decode)?,
        metadata,
        created_at: None,
    })
}

/// Writes a task, omitting empty members.
pub fn encode(writer: &mut Writer, task: &Task, style: Style) {
    encode_listed(writer, task, !task.artifacts.is_empty(), style);
}

/// Writes a task of a list: `artifacts` always present, even if empty, or never.
pub fn encode_listed(writer: &mut Writer, task: &Task, with_artifacts: bool, style: Style) {
    writer.object(|writer| {
        writer.text("kind", "task");
        writer.text("id", task.id.as_str());
        writer.text("contextId", task.context_id.as_str());
        encode_status(writer.key("status"), &task.status, style);
        if with_artifacts {
            let artifacts = writer.key("artifacts");
            artifacts.array(&task.artifacts, |writer, artifact| encode_artifact(writer, artifact, style));
        }
        if !task.history.is_empty() {
            let history = writer.key("history");
            history.array(&task.history, |writer, message| message::encode(writer, message, style));
        }
        time::encode_created(writer, task);
        encode_metadata(writer, task.status.state, task.metadata.as_ref(), style);
    });
}

/// Writes the metadata of a task or an update, with the state in it if another one is written.
pub(super) fn encode_metadata(writer: &mut Writer, state: TaskState, metadata: Option<&Json>, style: Style) {
    if style.draft_states {
        return writer.maybe_json("metadata", state::metadata_with_state(state, metadata).as_deref());
    }
    writer.maybe_json("metadata", metadata);
}

/// Reads an object's status and metadata. A state carried in the metadata overrides the one in the status.
pub(super) fn decode_status_and_metadata(object: &Object<'_, '_>) -> Read<(TaskStatus, Option<Json>)> {
    let (status, unknown) = object.need("status", "a task status", decode_status)?;
    let metadata = object.json_object("metadata")?;
    if unknown.is_some() {
        return Ok((status, with_unknown_state(metadata, unknown)));
    }
    let (metadata, state) = state::take_state(metadata, status.state);
    Ok((TaskStatus { state: state.unwrap_or(status.state), ..status }, metadata))
}

/// Reads a status, and the name of its state if it is unknown.
fn decode_status(node: Node<'_, '_>) -> Read<(TaskStatus, Option<String>)> {
    let object = node.object()?;
    let (state, unknown) = object.need("state", enums::STATE, enums::decode_state)?;
    let status = TaskStatus {
        state,
        message: object.maybe("message", message::decode)?,
        timestamp: object.maybe("timestamp", time::decode)?,
    };
    Ok((status, unknown))
}

/// Writes a status.
pub(super) fn encode_status(writer: &mut Writer, status: &TaskStatus, style: Style) {
    writer.object(|writer| {
        let state = if style.draft_states { state::closest(status.state) } else { status.state };
        writer.text("state", enums::state(state, style));
        if let Some(message) = &status.message {
            message::encode(writer.key("message"), message, style);
        }
        if let Some(timestamp) = status.timestamp {
            writer.text("timestamp", &timestamp.to_string());
        }
    });
}

/// The metadata with an unknown state name added, so that it is not lost.
fn with_unknown_state(metadata: Option<Json>, unknown: Option<String>) -> Option<Json> {
    match unknown {
        Some(name) => carrier::with_carried(metadata.as_ref(), |writer| writer.text("state", &name)),
        None => metadata,
    }
}

/// Reads the artifact of an update.
pub(super) fn decode_artifact(node: Node<'_, '_>) -> Read<Artifact> {
    decode_parts_of(node, MAX_PARTS)
}

fn decode_parts_of(node: Node<'_, '_>, max_parts: usize) -> Read<Artifact> {
    let object = node.object()?;
    Ok(Artifact {
        id: object.need_text("artifactId")?.into(),
        name: object.text("name")?,
        description: object.text("description")?,
        parts: part::decode_parts(&object, max_parts)?,
        extensions: object.texts("extensions")?,
        metadata: object.json_object("metadata")?,
    })
}

/// Writes an artifact.
pub(super) fn encode_artifact(writer: &mut Writer, artifact: &Artifact, style: Style) {
    writer.object(|writer| {
        writer.text("artifactId", artifact.id.as_str());
        writer.maybe_text("name", artifact.name.as_deref());
        writer.maybe_text("description", artifact.description.as_deref());
        part::encode_list(writer.key("parts"), &artifact.parts, Tag::Kind, style);
        writer.maybe_json("metadata", artifact.metadata.as_ref());
        writer.texts_unless_empty("extensions", &artifact.extensions);
    });
}
