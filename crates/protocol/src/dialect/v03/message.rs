//! Messages.

use crate::{
    ContextId, Message, TaskId,
    dialect::{
        Style,
        legacy::{
            enums,
            part::{self, Tag},
        },
        v1::message::MAX_PARTS,
    },
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
};

/// Reads a message.
pub fn decode(node: Node<'_, '_>) -> Read<Message> {
    let object = node.object()?;
    decode_kind(&object, "message")?;
    Ok(Message {
        id: object.text_or_empty("messageId")?.into(),
        role: object.need("role", enums::ROLE, enums::decode_role)?,
        parts: part::decode_parts(&object, MAX_PARTS)?,
        context_id: object.text("contextId")?.map(ContextId::from),
        task_id: object.text("taskId")?.map(TaskId::from),
        reference_task_ids: object.ids("referenceTaskIds")?,
        extensions: object.texts("extensions")?,
        metadata: object.json_object("metadata")?,
    })
}

/// Writes a message.
pub fn encode(writer: &mut Writer, message: &Message, style: Style) {
    writer.object(|writer| {
        writer.text("kind", "message");
        writer.text("messageId", message.id.as_str());
        writer.maybe_text("contextId", message.context_id.as_ref().map(AsRef::as_ref));
        writer.maybe_text("taskId", message.task_id.as_ref().map(AsRef::as_ref));
        writer.text("role", enums::role(message.role));
        part::encode_list(writer.key("parts"), &message.parts, Tag::Kind, style);
        writer.maybe_json("metadata", message.metadata.as_ref());
        writer.texts_unless_empty("extensions", &message.extensions);
        writer.texts_unless_empty("referenceTaskIds", &message.reference_task_ids);
    });
}

/// Checks the `kind` of an object if it has one.
pub(super) fn decode_kind(object: &Object<'_, '_>, kind: &str) -> Read<()> {
    let declared = object.maybe("kind", |node| match node.token()?.as_ref() {
        declared if declared == kind => Ok(()),
        _ => Err(node.expected(kind)),
    });
    declared.map(|_| ())
}
