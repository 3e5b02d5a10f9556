//! Messages and parts.

use crate::{
    Content, ContextId, Message, Part, Role, TaskId,
    json::{
        read::{Node, Object, Path, Read},
        write::Writer,
    },
};

/// Maximum number of parts of a message or an artifact chunk.
pub const MAX_PARTS: usize = 1_000;

const ROLES: [(&str, i32, Role); 2] = [("ROLE_USER", 1, Role::User), ("ROLE_AGENT", 2, Role::Agent)];

/// Reads a message.
pub fn decode(node: Node<'_, '_>) -> Read<Message> {
    let object = node.object()?;
    let what = "ROLE_USER or ROLE_AGENT";
    Ok(Message {
        id: object.need_text("messageId")?.into(),
        role: object.need("role", what, |node| node.one_of(what, &ROLES))?,
        parts: decode_parts(&object, MAX_PARTS)?,
        context_id: object.text("contextId")?.map(ContextId::from),
        task_id: object.text("taskId")?.map(TaskId::from),
        reference_task_ids: object.ids("referenceTaskIds")?,
        extensions: object.texts("extensions")?,
        metadata: object.json_object("metadata")?,
    })
}

/// Writes a message.
pub fn encode(writer: &mut Writer, message: &Message) {
    writer.object(|writer| {
        writer.text("messageId", message.id.as_str());
        writer.maybe_text("contextId", message.context_id.as_ref().map(AsRef::as_ref));
        writer.maybe_text("taskId", message.task_id.as_ref().map(AsRef::as_ref));
        let name = ROLES.iter().find(|row| row.2 == message.role).map(|row| row.0);
        writer.maybe_text("role", name);
        writer.key("parts").array(&message.parts, encode_part);
        writer.maybe_json("metadata", message.metadata.as_ref());
        writer.texts_unless_empty("extensions", &message.extensions);
        writer.texts_unless_empty("referenceTaskIds", &message.reference_task_ids);
    });
}

/// Expectation text for `parts` of a request.
pub(crate) const PARTS: &str = "at least one part";

/// Reads the `parts` of a message or an artifact: at most `max`, and in a request at least one.
pub(super) fn decode_parts(object: &Object<'_, '_>, max: usize) -> Read<Vec<Part>> {
    object.list_required_in_request("parts", PARTS, |node| {
        node.non_empty_list(max, "parts", PARTS, decode_part)
    })
}

fn decode_part(node: Node<'_, '_>) -> Read<Part> {
    let object = node.object()?;
    Ok(Part {
        content: decode_content(&node, &object)?,
        media_type: object.text("mediaType")?,
        filename: object.text("filename")?,
        metadata: object.json_object("metadata")?,
    })
}

/// Exactly one of the four members. A null member counts as absent, except `data`, where null is a value if
/// no other member is present.
fn decode_content(node: &Node<'_, '_>, object: &Object<'_, '_>) -> Read<Content> {
    let text = object.maybe("text", |node| node.string())?.map(|text| Content::Text(text.into_owned()));
    let raw = object.maybe("raw", |node| node.bytes())?.map(Content::Raw);
    let url = object.maybe("url", |node| node.string())?.map(|url| Content::Url(url.into_owned()));
    let data = object.maybe("data", |node| node.any())?.map(Content::Data);
    let mut present = [text, raw, url, data].into_iter().flatten();
    match (present.next(), present.next()) {
        (Some(content), None) => Ok(content),
        (Some(_), Some(_)) => Err(node.expected("only one of text, raw, url, data")),
        (None, _) => match object.present("data") {
            Some(null) => Node::new(null, &Path::Root).any().map(Content::Data),
            None => Err(node.expected("one of text, raw, url, data")),
        },
    }
}

/// Writes a part.
pub fn encode_part(writer: &mut Writer, part: &Part) {
    writer.object(|writer| {
        match &part.content {
            Content::Text(text) => writer.text("text", text),
            Content::Raw(bytes) => writer.key("raw").base64(bytes),
            Content::Url(url) => writer.text("url", url),
            Content::Data(json) => writer.key("data").raw(json.as_str()),
        }
        writer.maybe_json("metadata", part.metadata.as_ref());
        writer.maybe_text("filename", part.filename.as_deref());
        writer.maybe_text("mediaType", part.media_type.as_deref());
    });
}
