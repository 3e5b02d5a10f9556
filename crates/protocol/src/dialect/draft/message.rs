//! Messages: a role and parts.
//!
//! Published samples deviate from the published types, and implementations of the time deviate from both. The
//! role may be missing, the parts may be under `data` or be a single `content`, and a client may send a
//! skill's arguments instead of a message.

use crate::{
    Content, ContextId, Message, Part, Role, TaskId,
    dialect::{
        Style,
        legacy::{
            carrier, enums,
            part::{self, Tag},
        },
        v1::message::{MAX_PARTS, PARTS},
    },
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
};

/// Reads a message; the default role is the user.
pub fn decode(node: Node<'_, '_>) -> Read<Message> {
    decode_with_default_role(&node.object()?, Role::User)
}

/// Reads the message of a status; the default role is the agent.
pub(super) fn decode_of_agent(node: Node<'_, '_>) -> Read<Message> {
    decode_with_default_role(&node.object()?, Role::Agent)
}

/// Reads the message of a send: a message, or any other object, which is taken as the arguments of a skill. Where the
/// request names the skill, these may have members with the names of a message's.
pub(super) fn decode_sent(node: Node<'_, '_>, names_skill: bool) -> Read<Message> {
    let object = node.object()?;
    let is_set = |name| object.present(name).is_some_and(|raw| !raw.is_null());
    let is_list = |name| object.present(name).is_some_and(|raw| raw.get().starts_with('['));
    if is_set("role") || is_set("parts") || is_list("data") {
        let message = decode_with_default_role(&object, Role::User);
        if message.is_ok() || !names_skill || has_form_of_message(&object) {
            return message;
        }
    }
    Ok(Message::new("", Role::User, vec![Part::data(node.any_object()?)]))
}

/// Whether an object can be nothing but a message, with whatever mistake: its parts are objects that say what they hold.
fn has_form_of_message(object: &Object<'_, '_>) -> bool {
    let is_part = |node: Node<'_, '_>| {
        let part = node.object()?;
        let says = |name| part.maybe(name, |node| node.token()).ok().flatten();
        let tag = says("type").or_else(|| says("kind"));
        Ok(tag.is_some_and(|tag| matches!(tag.as_ref(), "text" | "file" | "data")))
    };
    let parts = object.maybe("parts", |node| node.list(is_part)).ok().flatten().unwrap_or_default();
    !parts.is_empty() && parts.iter().all(|is_part| *is_part)
}

/// Writes a message. Its id and other fields unknown to the draft are carried in the metadata.
pub fn encode(writer: &mut Writer, message: &Message, style: Style) {
    writer.object(|writer| {
        writer.text("role", enums::role(message.role));
        part::encode_list(writer.key("parts"), &message.parts, Tag::Type, style);
        let nameless = message.id.as_str().is_empty();
        if nameless && message.reference_task_ids.is_empty() && message.extensions.is_empty() {
            return writer.maybe_json("metadata", message.metadata.as_ref());
        }
        let metadata = carrier::with_carried(message.metadata.as_ref(), |writer| {
            writer.maybe_text("messageId", Some(message.id.as_str()).filter(|_| !nameless));
            writer.texts_unless_empty("extensions", &message.extensions);
            writer.texts_unless_empty("referenceTaskIds", &message.reference_task_ids);
        });
        writer.maybe_json("metadata", metadata.as_ref());
    });
}

fn decode_with_default_role(object: &Object<'_, '_>, default_role: Role) -> Read<Message> {
    let (metadata, carried) =
        carrier::take_carried(object.json_object("metadata")?, &CARRIED, decode_carried);
    let carried = carried.unwrap_or_default();
    Ok(Message {
        id: object.text("messageId")?.or(carried.id).unwrap_or_default().into(),
        role: object.maybe("role", enums::decode_role)?.unwrap_or(default_role),
        parts: decode_parts(object)?,
        context_id: object.text("conversationId")?.map(ContextId::from),
        task_id: None,
        reference_task_ids: carried.reference_task_ids,
        extensions: carried.extensions,
        metadata,
    })
}

/// `parts`; else `data`, as in the first published sample; else a single `content`, as python-a2a sends.
fn decode_parts(object: &Object<'_, '_>) -> Read<Vec<Part>> {
    let list = |node: Node<'_, '_>| part::decode_list(node, MAX_PARTS);
    let parts = match object.maybe("parts", list)? {
        Some(parts) => Some(parts),
        None => match object.maybe("data", list)? {
            Some(parts) => Some(parts),
            None => object.maybe("content", |node| decode_content(node).map(|part| vec![part]))?,
        },
    };
    parts.map_or_else(|| object.empty_unless_request("parts", PARTS), Ok)
}

/// One of the three part types, or a python-a2a specific object such as a function call, which becomes data.
fn decode_content(node: Node<'_, '_>) -> Read<Part> {
    let tag = node.object()?.text("type")?;
    match tag.as_deref() {
        None | Some("text" | "file" | "data") => part::decode(node),
        Some(_) => Ok(Part::new(Content::Data(node.any_object()?))),
    }
}

const CARRIED: [&str; 3] = ["messageId", "extensions", "referenceTaskIds"];

/// Fields that [`encode`] carried in the metadata.
#[derive(Default)]
struct CarriedFields {
    id: Option<String>,
    extensions: Vec<String>,
    reference_task_ids: Vec<TaskId>,
}

fn decode_carried(carried: &Object<'_, '_>) -> Read<CarriedFields> {
    Ok(CarriedFields {
        id: carried.text("messageId")?,
        extensions: carried.texts("extensions")?,
        reference_task_ids: carried.ids("referenceTaskIds")?,
    })
}
