//! Tasks, their status and artifacts.

use crate::{
    Artifact, ArtifactId, Json, Task, TaskState, TaskStatus,
    dialect::{
        Style,
        legacy::{
            carrier, enums,
            part::{self, Tag},
            state, time,
        },
    },
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
    operation::MAX_ID_BYTES,
};

use super::message;

/// Reads a task.
pub fn decode(node: Node<'_, '_>) -> Read<Task> {
    let object = node.object()?;
    let id = object.need("id", "a non-empty string", decode_id)?.into();
    let (status, metadata) = decode_status_and_metadata(&object)?;
    let mut position = 0;
    Ok(Task {
        id,
        context_id: object.text_or_empty("sessionId")?.into(),
        status,
        artifacts: object.list("artifacts", |node| {
            position += 1;
            // Chunks were appended over time, so the limit per chunk does not apply; the size of a task is
            // limited instead.
            decode_artifact(&node.object()?, position - 1, usize::MAX)
        })?,
        history: object.list("history", message::decode)?,
        metadata,
        created_at: None,
    })
}

/// Writes a task. `history` is always present, even if empty.
pub fn encode(writer: &mut Writer, task: &Task, style: Style) {
    writer.object(|writer| {
        writer.text("id", task.id.as_str());
        let context = task.context_id.as_str();
        writer.maybe_text("sessionId", Some(context).filter(|context| !context.is_empty()));
        encode_status(writer.key("status"), &task.status, style);
        if !task.artifacts.is_empty() {
            writer.key("artifacts").array(task.artifacts.iter().enumerate(), |writer, (index, artifact)| {
                writer.object(|writer| encode_artifact(writer, artifact, index, None, style));
            });
        }
        let history = writer.key("history");
        history.array(&task.history, |writer, message| message::encode(writer, message, style));
        time::encode_created(writer, task);
        writer.maybe_json(
            "metadata",
            state::metadata_with_state(task.status.state, task.metadata.as_ref()).as_deref(),
        );
    });
}

/// Reads a task id. Some published samples have a number.
pub(super) fn decode_id(node: Node<'_, '_>) -> Read<String> {
    let number = node.text().bytes().all(|byte| byte.is_ascii_digit());
    match node.text() {
        id if number && id.len() > MAX_ID_BYTES => {
            Err(node.expected(format_args!("at most {MAX_ID_BYTES} bytes")))
        }
        id if number => Ok(id.to_owned()),
        _ => node.non_empty_string(),
    }
}

/// Reads an object's status and metadata. A state carried in the metadata overrides the one in the status.
pub(super) fn decode_status_and_metadata(object: &Object<'_, '_>) -> Read<(TaskStatus, Option<Json>)> {
    let (status, unknown) = object.need("status", "a task status", decode_status)?;
    let metadata = object.json_object("metadata")?;
    if let Some(name) = unknown {
        let metadata = carrier::with_carried(metadata.as_ref(), |writer| writer.text("state", &name));
        return Ok((status, metadata));
    }
    let (metadata, state) = state::take_state(metadata, status.state);
    Ok((TaskStatus { state: state.unwrap_or(status.state), ..status }, metadata))
}

/// Writes a status.
pub(super) fn encode_status(writer: &mut Writer, status: &TaskStatus, style: Style) {
    writer.object(|writer| {
        writer.text("state", enums::state(state::closest(status.state), style));
        if let Some(message) = &status.message {
            // Which credentials are required is data in every profile.
            let data_as_text = style.data_as_text && status.state != TaskState::AuthRequired;
            message::encode(writer.key("message"), message, Style { data_as_text, ..style });
        }
        if let Some(timestamp) = status.timestamp {
            writer.text("timestamp", &timestamp.to_string());
        }
    });
}

/// Reads an artifact, which is identified by its position.
pub(super) fn decode_artifact(object: &Object<'_, '_>, position: u32, max_parts: usize) -> Read<Artifact> {
    let index = object.count("index")?.unwrap_or(position);
    let (metadata, extensions) =
        carrier::take_carried(object.json_object("metadata")?, &["extensions"], |carried| {
            carried.texts("extensions")
        });
    Ok(Artifact {
        id: ArtifactId::from(format!("index-{index}")),
        name: object.text("name")?,
        description: object.text("description")?,
        parts: part::decode_parts(object, max_parts)?,
        extensions: extensions.unwrap_or_default(),
        metadata,
    })
}

/// Whether a chunk is appended to the artifact, and whether it is the last.
pub(super) struct Chunk {
    pub(super) append: bool,
    pub(super) last: bool,
}

/// Writes the members of an artifact.
pub(super) fn encode_artifact(
    writer: &mut Writer,
    artifact: &Artifact,
    index: usize,
    chunk: Option<&Chunk>,
    style: Style,
) {
    writer.maybe_text("name", artifact.name.as_deref());
    writer.maybe_text("description", artifact.description.as_deref());
    part::encode_list(writer.key("parts"), &artifact.parts, Tag::Type, style);
    writer.key("index").int(i64::try_from(index).unwrap_or(i64::MAX));
    writer.maybe_flag("append", chunk.map(|chunk| chunk.append));
    writer.maybe_flag("lastChunk", chunk.map(|chunk| chunk.last));
    if artifact.extensions.is_empty() {
        return writer.maybe_json("metadata", artifact.metadata.as_ref());
    }
    let metadata = carrier::with_carried(artifact.metadata.as_ref(), |writer| {
        writer.texts("extensions", &artifact.extensions);
    });
    writer.maybe_json("metadata", metadata.as_ref());
}

fn decode_status(node: Node<'_, '_>) -> Read<(TaskStatus, Option<String>)> {
    let object = node.object()?;
    let (state, unknown) = object.need("state", enums::STATE, enums::decode_state)?;
    let status = TaskStatus {
        state,
        message: object.maybe("message", message::decode_of_agent)?,
        timestamp: object.maybe("timestamp", time::decode)?,
    };
    Ok((status, unknown))
}
