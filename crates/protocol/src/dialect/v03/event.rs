//! Stream frames: one of four objects, distinguished by `kind`.

use std::borrow::Cow;

use crate::{
    ContextId, Event, TaskId, TaskStatus,
    dialect::Style,
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{ArtifactUpdate, StatusUpdate},
};

use super::{message, task};

const STATUS: &str = "status-update";
const ARTIFACT: &str = "artifact-update";

/// Reads a frame.
pub fn decode(node: Node<'_, '_>) -> Read<Event> {
    let what = "a task, a message, a status-update or an artifact-update";
    let object = node.object()?;
    match kind(&object)?.as_ref() {
        "task" => task::decode(node).map(Event::Task),
        "message" => message::decode(node).map(Event::Message),
        STATUS => decode_status_update(&object).map(Event::Status),
        ARTIFACT => decode_artifact_update(&object).map(Event::Artifact),
        _ => Err(node.expected(what)),
    }
}

/// Writes a frame. An artifact update may have a status beside it.
pub fn encode(writer: &mut Writer, event: &Event, beside: Option<&TaskStatus>, style: Style) {
    match event {
        Event::Task(task) => task::encode(writer, task, style),
        Event::Message(message) => message::encode(writer, message, style),
        Event::Status(update) => encode_status_update(writer, update, style),
        Event::Artifact(update) => encode_artifact_update(writer, update, beside, style),
    }
}

/// The declared kind, else the one implied by the members.
fn kind<'a>(object: &Object<'a, '_>) -> Read<Cow<'a, str>> {
    if let Some(kind) = object.maybe("kind", |node| node.string())? {
        return Ok(kind);
    }
    let has = |name| object.present(name).is_some();
    let kind = match (has("artifact"), has("status"), has("taskId"), has("parts") || has("role")) {
        (true, ..) => ARTIFACT,
        (_, true, true, _) => STATUS,
        (_, true, ..) => "task",
        (.., true) => "message",
        _ => "",
    };
    Ok(Cow::Borrowed(kind))
}

fn decode_status_update(object: &Object<'_, '_>) -> Read<StatusUpdate> {
    let task_id = object.need_text("taskId")?.into();
    let (status, metadata) = task::decode_status_and_metadata(object)?;
    Ok(StatusUpdate { task_id, context_id: object.text_or_empty("contextId")?.into(), status, metadata })
}

/// A settled status (terminal or interrupted) is the last frame of its stream.
fn encode_status_update(writer: &mut Writer, update: &StatusUpdate, style: Style) {
    writer.object(|writer| {
        writer.text("kind", STATUS);
        encode_ids(writer, &update.task_id, &update.context_id, style);
        task::encode_status(writer.key("status"), &update.status, style);
        writer.key("final").boolean(update.status.state.is_settled());
        task::encode_metadata(writer, update.status.state, update.metadata.as_ref(), style);
    });
}

fn decode_artifact_update(object: &Object<'_, '_>) -> Read<ArtifactUpdate> {
    Ok(ArtifactUpdate {
        task_id: object.need_text("taskId")?.into(),
        context_id: object.text_or_empty("contextId")?.into(),
        artifact: object.need("artifact", "an artifact", task::decode_artifact)?,
        append: object.flag("append")?.unwrap_or_default(),
        last_chunk: object.flag("lastChunk")?.unwrap_or_default(),
        metadata: object.json_object("metadata")?,
    })
}

/// Older clients require both flags, so both are always written.
fn encode_artifact_update(
    writer: &mut Writer,
    update: &ArtifactUpdate,
    beside: Option<&TaskStatus>,
    style: Style,
) {
    writer.object(|writer| {
        writer.text("kind", ARTIFACT);
        encode_ids(writer, &update.task_id, &update.context_id, style);
        writer.key("append").boolean(update.append);
        writer.key("lastChunk").boolean(update.last_chunk);
        task::encode_artifact(writer.key("artifact"), &update.artifact, style);
        if let Some(status) = beside {
            task::encode_status(writer.key("status"), status, style);
        }
        writer.maybe_json("metadata", update.metadata.as_ref());
    });
}

fn encode_ids(writer: &mut Writer, task: &TaskId, context: &ContextId, style: Style) {
    if style.update_ids {
        writer.text("id", task.as_str());
    }
    writer.text("taskId", task.as_str());
    writer.text("contextId", context.as_str());
}
