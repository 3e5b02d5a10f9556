//! Stream frames: an object with exactly one of four members.

use crate::{
    Event,
    dialect::proto_json,
    json::{
        read::{Node, Read},
        write::Writer,
    },
    model::StatusUpdate,
};

use super::{Form, message, task};

/// Reads a frame.
pub fn decode(node: Node<'_, '_>) -> Read<Event> {
    let object = node.object()?;
    let events = [
        object.maybe("task", task::decode)?.map(Event::Task),
        object.maybe("message", message::decode)?.map(Event::Message),
        object.maybe("msg", message::decode)?.map(Event::Message),
        object.maybe("statusUpdate", decode_status_update)?.map(Event::Status),
        object
            .maybe("artifactUpdate", |node| {
                proto_json::decode_artifact_update::<Form>(node, message::MAX_PARTS)
            })?
            .map(Event::Artifact),
    ];
    let mut events = events.into_iter().flatten();
    match (events.next(), events.next()) {
        (Some(event), None) => Ok(event),
        _ => Err(node.expected("exactly one of task, message, statusUpdate, artifactUpdate")),
    }
}

/// Writes a frame.
pub fn encode(writer: &mut Writer, event: &Event) {
    proto_json::encode_event::<Form>(writer, event);
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
