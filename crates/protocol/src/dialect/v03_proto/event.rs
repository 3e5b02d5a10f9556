//! Stream frames: an object with exactly one of four members.

use crate::{
    Event, Message, Task,
    json::{
        read::{Node, Read},
        write::Writer,
    },
    model::{ArtifactUpdate, StatusUpdate},
};

use super::{message, task};

/// Reads a frame.
pub fn decode(node: Node<'_, '_>) -> Read<Event> {
    let object = node.object()?;
    let events = [
        object.maybe("task", task::decode)?.map(Event::Task),
        object.maybe("message", message::decode)?.map(Event::Message),
        object.maybe("msg", message::decode)?.map(Event::Message),
        object.maybe("statusUpdate", decode_status_update)?.map(Event::Status),
        object.maybe("artifactUpdate", decode_artifact_update)?.map(Event::Artifact),
    ];
    let mut events = events.into_iter().flatten();
    match (events.next(), events.next()) {
        (Some(event), None) => Ok(event),
        _ => Err(node.expected("exactly one of task, message, statusUpdate, artifactUpdate")),
    }
}

/// Writes a frame.
pub fn encode(writer: &mut Writer, event: &Event) {
    match event {
        Event::Task(task) => encode_task(writer, task),
        Event::Message(message) => encode_message(writer, message),
        Event::Status(update) => encode_status_update(writer, update),
        Event::Artifact(update) => encode_artifact_update(writer, update),
    }
}

/// The frame of a task; also the reply to a send that created one.
pub fn encode_task(writer: &mut Writer, task: &Task) {
    writer.object(|writer| task::encode(writer.key("task"), task));
}

/// The frame of a message; also the reply to a send that was answered with a message.
pub fn encode_message(writer: &mut Writer, message: &Message) {
    writer.object(|writer| message::encode(writer.key("message"), message));
}

fn decode_status_update(node: Node<'_, '_>) -> Read<StatusUpdate> {
    let object = node.object()?;
    let (status, unknown_state) = object.need("status", "a task status", task::decode_status)?;
    Ok(StatusUpdate {
        task_id: object.need_text("taskId")?.into(),
        context_id: object.text_or_empty("contextId")?.into(),
        status,
        metadata: task::with_unknown_state(object.json_object("metadata")?, unknown_state),
    })
}

fn encode_status_update(writer: &mut Writer, update: &StatusUpdate) {
    writer.object(|writer| {
        writer.key("statusUpdate").object(|writer| {
            writer.text("taskId", update.task_id.as_str());
            writer.text("contextId", update.context_id.as_str());
            task::encode_status(writer.key("status"), &update.status);
            // A settled status (terminal or interrupted) is the last frame of its stream.
            writer.flag_if_set("final", update.status.state.is_settled());
            writer.maybe_json("metadata", update.metadata.as_ref());
        });
    });
}

fn decode_artifact_update(node: Node<'_, '_>) -> Read<ArtifactUpdate> {
    let object = node.object()?;
    Ok(ArtifactUpdate {
        task_id: object.need_text("taskId")?.into(),
        context_id: object.text_or_empty("contextId")?.into(),
        artifact: object.need("artifact", "an artifact", task::decode_artifact)?,
        append: object.flag("append")?.unwrap_or_default(),
        last_chunk: object.flag("lastChunk")?.unwrap_or_default(),
        metadata: object.json_object("metadata")?,
    })
}

fn encode_artifact_update(writer: &mut Writer, update: &ArtifactUpdate) {
    writer.object(|writer| {
        writer.key("artifactUpdate").object(|writer| {
            writer.text("taskId", update.task_id.as_str());
            writer.text("contextId", update.context_id.as_str());
            task::encode_artifact(writer.key("artifact"), &update.artifact);
            writer.flag_if_set("append", update.append);
            writer.flag_if_set("lastChunk", update.last_chunk);
            writer.maybe_json("metadata", update.metadata.as_ref());
        });
    });
}
