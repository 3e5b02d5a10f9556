//! Stream frames: a status update or an artifact update.
//!
//! The draft has no frame for a whole task or a direct message. A task is written as its status followed by
//! one frame per artifact, a message as a final status. One event may therefore become several frames.

use crate::{
    ArtifactId, Event, Message, Task, TaskState, TaskStatus,
    dialect::{Style, legacy::state, v1::message::MAX_PARTS},
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{ArtifactUpdate, StatusUpdate},
};

use super::task::{self, Chunk};

/// Reads a frame. A whole task is accepted too, though the draft does not define that frame.
pub fn decode(node: Node<'_, '_>) -> Read<Event> {
    let object = node.object()?;
    let has = |name| object.present(name).is_some();
    if has("artifact") {
        decode_artifact_update(&object).map(Event::Artifact)
    } else if !has("status") {
        Err(node.expected("a status or an artifact"))
    } else if !has("final") && ["sessionId", "artifacts", "history"].into_iter().any(has) {
        task::decode(node).map(Event::Task)
    } else {
        decode_status_update(&object).map(Event::Status)
    }
}

/// Writes the frames of an event, each by itself. `place` returns the index that identifies an artifact; an artifact
/// update may have a status beside it.
pub fn encode(
    event: &Event,
    beside: Option<&TaskStatus>,
    style: Style,
    place: &mut dyn FnMut(&ArtifactId) -> usize,
    each: &mut dyn FnMut(&[u8]),
) {
    let mut frame = |fields: &dyn Fn(&mut Writer)| {
        let mut writer = Writer::new();
        writer.object(fields);
        each(&writer.finish());
    };
    match event {
        Event::Task(task) => {
            frame(&|writer| encode_snapshot(writer, task, style));
            for artifact in &task.artifacts {
                let index = place(&artifact.id);
                // Until the task is terminal, more chunks of an artifact may follow.
                let chunk = Chunk { append: false, last: task.status.state.is_terminal() };
                frame(&|writer| {
                    writer.text("id", task.id.as_str());
                    writer.key("artifact").object(|writer| {
                        task::encode_artifact(writer, artifact, index, Some(&chunk), style);
                    });
                });
            }
        }
        Event::Message(message) => frame(&|writer| encode_message(writer, message, style)),
        Event::Status(update) => frame(&|writer| encode_status_update(writer, update, style)),
        Event::Artifact(update) => {
            let index = place(&update.artifact.id);
            frame(&|writer| encode_artifact_update(writer, update, beside, index, style));
        }
    }
}

/// The status of a task snapshot. A snapshot never ends the stream, so it is not final.
fn encode_snapshot(writer: &mut Writer, task: &Task, style: Style) {
    writer.text("id", task.id.as_str());
    task::encode_status(writer.key("status"), &task.status, style);
    writer.key("final").boolean(false);
    writer.maybe_json(
        "metadata",
        state::metadata_with_state(task.status.state, task.metadata.as_ref()).as_deref(),
    );
}

/// A direct message is written as the final status of a task that has no other events.
fn encode_message(writer: &mut Writer, message: &Message, style: Style) {
    let status = TaskStatus { state: TaskState::Completed, message: Some(message.clone()), timestamp: None };
    writer.text("id", message.task_id.as_ref().map_or("", AsRef::as_ref));
    task::encode_status(writer.key("status"), &status, style);
    writer.key("final").boolean(true);
}

fn decode_status_update(object: &Object<'_, '_>) -> Read<StatusUpdate> {
    let task_id = object.need("id", "a non-empty string", task::decode_id)?.into();
    let (status, metadata) = task::decode_status_and_metadata(object)?;
    Ok(StatusUpdate { task_id, context_id: "".into(), status, metadata })
}

/// A settled status (terminal or interrupted) is the last frame of its stream.
fn encode_status_update(writer: &mut Writer, update: &StatusUpdate, style: Style) {
    let state = update.status.state;
    writer.text("id", update.task_id.as_str());
    task::encode_status(writer.key("status"), &update.status, style);
    writer.key("final").boolean(state.is_settled());
    writer.maybe_json("metadata", state::metadata_with_state(state, update.metadata.as_ref()).as_deref());
}

fn decode_artifact_update(object: &Object<'_, '_>) -> Read<ArtifactUpdate> {
    let task_id = object.need("id", "a non-empty string", task::decode_id)?.into();
    let (artifact, chunk) = object.need("artifact", "an artifact", decode_chunk)?;
    Ok(ArtifactUpdate {
        task_id,
        context_id: "".into(),
        artifact,
        append: chunk.append,
        last_chunk: chunk.last,
        metadata: object.json_object("metadata")?,
    })
}

/// An artifact, or a list with one artifact as in the published samples.
fn decode_chunk(node: Node<'_, '_>) -> Read<(crate::Artifact, Chunk)> {
    if node.text().starts_with('[') {
        let mut chunks = node.list(decode_chunk_object)?;
        return chunks.pop().filter(|_| chunks.is_empty()).ok_or_else(|| node.expected("an artifact"));
    }
    decode_chunk_object(node)
}

fn decode_chunk_object(node: Node<'_, '_>) -> Read<(crate::Artifact, Chunk)> {
    let object = node.object()?;
    let chunk = Chunk {
        append: object.flag("append")?.unwrap_or_default(),
        last: object.flag("lastChunk")?.unwrap_or_default(),
    };
    Ok((task::decode_artifact(&object, 0, MAX_PARTS)?, chunk))
}

fn encode_artifact_update(
    writer: &mut Writer,
    update: &ArtifactUpdate,
    beside: Option<&TaskStatus>,
    index: usize,
    style: Style,
) {
    let chunk = Chunk { append: update.append, last: update.last_chunk };
    writer.text("id", update.task_id.as_str());
    writer.key("artifact").object(|writer| {
        task::encode_artifact(writer, &update.artifact, index, Some(&chunk), style);
    });
    if let Some(status) = beside {
        task::encode_status(writer.key("status"), status, style);
    }
    writer.maybe_json("metadata", update.metadata.as_ref());
}
