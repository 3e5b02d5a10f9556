//! Messages: a role and parts.
//!
//! The published samples do not keep to the published types, and the houses of the time kept to neither. A
//! role may be missing, the parts may stand under `data` or be one `content`, and what a client sends may be
//! no message at all but the arguments of a skill.

use crate::{
    Content, ContextId, Message, Part, Role, TaskId,
    dialect::{
        Style,
        legacy::{
            carrier,
            part::{self, Tag},
            word,
        },
        v1::message::{MAX_PARTS, PARTS},
    },
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
};

/// Reads a message; without a role it is the user's.
pub fn decode(node: Node<'_, '_>) -> Read<Message> {
    decode_said_by(&node.object()?, Role::User)
}

/// Reads what an agent says about a status; without a role it is the agent's.
pub(super) fn decode_of_agent(node: Node<'_, '_>) -> Read<Message> {
    decode_said_by(&node.object()?, Role::Agent)
}

/// Reads what a client sends: a message, or an object that is none of it and holds a skill's arguments.
pub(super) fn decode_sent(node: Node<'_, '_>) -> Read<Message> {
    let object = node.object()?;
    let is_set = |name| object.present(name).is_some_and(|raw| !raw.is_null());
    let is_list = |name| object.present(name).is_some_and(|raw| raw.get().starts_with('['));
    if is_set("role") || is_set("parts") || is_list("data") {
        return decode_said_by(&object, Role::User);
    }
    Ok(Message::new("", Role::User, vec![Part::data(node.any_object()?)]))
}

/// Writes a message. Its id and what else has no place here go into the metadata.
pub fn encode(writer: &mut Writer, message: &Message, style: Style) {
    writer.object(|writer| {
        writer.text("role", word::role(message.role));
        part::encode_list(writer.key("parts"), &message.parts, Tag::Type, style);
        let nameless = message.id.as_str().is_empty();
        if nameless && message.reference_task_ids.is_empty() && message.extensions.is_empty() {
            return writer.maybe_json("metadata", message.metadata.as_ref());
        }
        let metadata = carrier::with_note(message.metadata.as_ref(), |writer| {
            writer.maybe_text("messageId", Some(message.id.as_str()).filter(|_| !nameless));
            writer.texts_unless_empty("extensions", &message.extensions);
            writer.texts_unless_empty("referenceTaskIds", &message.reference_task_ids);
        });
        writer.maybe_json("metadata", metadata.as_ref());
    });
}

fn decode_said_by(object: &Object<'_, '_>, silent: Role) -> Read<Message> {
    let (metadata, note) = carrier::take_note(object.json_object("metadata")?, &NOTE, decode_note);
    let note = note.unwrap_or_default();
    Ok(Message {
        id: object.text("messageId")?.or(note.id).unwrap_or_default().into(),
        role: object.maybe("role", word::decode_role)?.unwrap_or(silent),
        parts: decode_parts(object)?,
        context_id: object.text("conversationId")?.map(ContextId::from),
        task_id: None,
        reference_task_ids: note.reference_task_ids,
        extensions: note.extensions,
        metadata,
    })
}

/// `parts`; else `data`, as the first sample has it; else one `content`, as python-a2a has it.
fn decode_parts(object: &Object<'_, '_>) -> Read<Vec<Part>> {
    let list = |node: Node<'_, '_>| part::decode_list(node, MAX_PARTS);
    let parts = match object.maybe("parts", list)? {
        Some(parts) => Some(parts),
        None => match object.maybe("data", list)? {
            Some(parts) => Some(parts),
            None => object.maybe("content", |node| decode_content(node).map(|part| vec![part]))?,
        },
    };
    parts.map_or_else(|| object.nothing_of_request("parts", PARTS), Ok)
}

/// One of the three parts, or something of python-a2a's own such as a function call, which is data.
fn decode_content(node: Node<'_, '_>) -> Read<Part> {
    let tag = node.object()?.text("type")?;
    match tag.as_deref() {
        None | Some("text" | "file" | "data") => part::decode(node),
        Some(_) => Ok(Part::new(Content::Data(node.any_object()?))),
    }
}

const NOTE: [&str; 3] = ["messageId", "extensions", "referenceTaskIds"];

/// What [`encode`] put into the metadata.
#[derive(Default)]
struct Note {
    id: Option<String>,
    extensions: Vec<String>,
    reference_task_ids: Vec<TaskId>,
}

fn decode_note(note: &Object<'_, '_>) -> Read<Note> {
    Ok(Note {
        id: note.text("messageId")?,
        extensions: note.texts("extensions")?,
        reference_task_ids: note.ids("referenceTaskIds")?,
    })
}
