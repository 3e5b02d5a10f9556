//! Messages and parts.

use crate::{
    Content, ContextId, Json, Message, Part, Role, TaskId,
    dialect::{
        legacy::{carrier, part},
        v1::{self, message::PARTS},
    },
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
};

/// Maximum number of parts of a message or an artifact chunk.
pub const MAX_PARTS: usize = v1::message::MAX_PARTS;

const ROLES: [(&str, i32, Role); 2] = [("ROLE_USER", 1, Role::User), ("ROLE_AGENT", 2, Role::Agent)];
const REFERENCES: &str = "referenceTaskIds";

/// Reads a message. The id may be missing: agents may omit it, clients may not.
pub fn decode(node: Node<'_, '_>) -> Read<Message> {
    let object = node.object()?;
    let what = "ROLE_USER or ROLE_AGENT";
    let (metadata, reference_task_ids) = take_references(object.json_object("metadata")?);
    Ok(Message {
        id: object.text_or_empty("messageId")?.into(),
        role: object.need("role", what, |node| node.one_of(what, &ROLES))?,
        parts: match object.maybe("content", |node| decode_parts(node, MAX_PARTS))? {
            Some(parts) => parts,
            None => {
                // The violation names the missing field as the protobuf file does.
                let other = object.maybe("parts", |node| decode_parts(node, MAX_PARTS))?;
                other.map_or_else(|| object.empty_unless_request("content", PARTS), Ok)?
            }
        },
        context_id: object.text("contextId")?.map(ContextId::from),
        task_id: object.text("taskId")?.map(TaskId::from),
        reference_task_ids,
        extensions: object.texts("extensions")?,
        metadata,
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
        encode_parts(writer.key("content"), &message.parts);
        writer.maybe_json("metadata", metadata_with_references(message).as_ref());
        writer.texts_unless_empty("extensions", &message.extensions);
    });
}

/// Reads a list of parts: at most `max`, and in a request at least one.
pub(super) fn decode_parts(node: Node<'_, '_>, max: usize) -> Read<Vec<Part>> {
    node.non_empty_list(max, "parts", PARTS, decode_part)
}

/// Writes a list of parts.
pub(super) fn encode_parts(writer: &mut Writer, parts: &[Part]) {
    writer.array(parts, encode_part);
}

/// Removes the referenced task ids from the metadata of a message.
pub(crate) fn take_references(metadata: Option<Json>) -> (Option<Json>, Vec<TaskId>) {
    let (metadata, references) = carrier::take_carried(metadata, &[REFERENCES], decode_references);
    (metadata, references.unwrap_or_default())
}

fn decode_references(carried: &Object<'_, '_>) -> Read<Vec<TaskId>> {
    carried.list(REFERENCES, |node| node.non_empty_string().map(TaskId::from))
}

/// The metadata of a message with the referenced task ids added.
pub(crate) fn metadata_with_references(message: &Message) -> Option<Json> {
    if message.reference_task_ids.is_empty() {
        return message.metadata.clone();
    }
    carrier::with_carried(message.metadata.as_ref(), |writer| {
        writer.texts(REFERENCES, &message.reference_task_ids);
    })
}

fn decode_part(node: Node<'_, '_>) -> Read<Part> {
    let object = node.object()?;
    let metadata = object.json_object("metadata")?;
    let text = object.maybe("text", |node| Ok(Content::Text(node.string()?.into_owned())))?;
    let data = object.maybe("data", decode_data)?;
    let file = object.maybe("file", decode_file)?;
    match (text, data, file) {
        (Some(text), None, None) => Ok(part::part_with_carried(text, metadata)),
        (None, Some(data), None) => {
            let (data, metadata) = part::unwrap(data, metadata);
            Ok(part::part_with_carried(Content::Data(data), metadata))
        }
        (None, None, Some(file)) => Ok(Part { metadata, ..file }),
        (None, None, None) => Err(node.expected("one of text, file, data")),
        _ => Err(node.expected("only one of text, file, data")),
    }
}

/// The value inside its nested message, which some clients omit.
fn decode_data(node: Node<'_, '_>) -> Read<Json> {
    let inside = node.object()?.maybe("data", |node| node.any())?;
    inside.map_or_else(|| node.any(), Ok)
}

/// Bytes or a URI, under the names of the protobuf file or of the JSON schema.
fn decode_file(node: Node<'_, '_>) -> Read<Part> {
    let object = node.object()?;
    let uri = |name| object.maybe(name, |node| Ok(Content::Url(node.string()?.into_owned())));
    let contents = [
        object.maybe("fileWithBytes", |node| node.bytes().map(from_base64_field))?.map(Content::Raw),
        uri("fileWithUri")?,
        object.maybe("bytes", |node| node.bytes())?.map(Content::Raw),
        uri("uri")?,
    ];
    let mut contents = contents.into_iter().flatten();
    match (contents.next(), contents.next()) {
        (Some(content), None) => Ok(Part {
            media_type: object.text("mimeType")?,
            filename: object.text("name")?,
            ..Part::new(content)
        }),
        (None, _) => Err(node.expected("one of fileWithBytes, fileWithUri")),
        _ => Err(node.expected("only one of fileWithBytes, fileWithUri")),
    }
}

fn encode_part(writer: &mut Writer, part: &Part) {
    writer.object(|writer| match &part.content {
        Content::Text(text) => {
            writer.text("text", text);
            writer.maybe_json("metadata", part::metadata_with_carried(part, "text/plain").as_ref());
        }
        Content::Data(data) => {
            let (data, metadata) = part::wrap(data, part::metadata_with_carried(part, "application/json"));
            writer.key("data").object(|writer| writer.key("data").raw(data.as_str()));
            writer.maybe_json("metadata", metadata.as_ref());
        }
        Content::Raw(bytes) => encode_file(writer, part, |writer| {
            writer.key("fileWithBytes").base64(to_base64_field(bytes).as_bytes());
        }),
        Content::Url(uri) => encode_file(writer, part, |writer| writer.text("fileWithUri", uri)),
    });
}

fn encode_file(writer: &mut Writer, part: &Part, content: impl FnOnce(&mut Writer)) {
    writer.key("file").object(|writer| {
        writer.maybe_text("name", part.filename.as_deref());
        writer.maybe_text("mimeType", part.media_type.as_deref());
        content(writer);
    });
    writer.maybe_json("metadata", part.metadata.as_ref());
}

/// The content of the protobuf field for these bytes: other implementations put base64 text there, not the
/// bytes themselves.
pub(crate) fn to_base64_field(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The bytes a protobuf field represents: its base64 text decoded, or the field itself if it is not base64.
pub(crate) fn from_base64_field(field: Vec<u8>) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(&field).unwrap_or(field)
}
