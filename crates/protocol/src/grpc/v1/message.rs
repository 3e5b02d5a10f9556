//! Messages and parts.

use crate::{
    Content, ContextId, Message, Part, TaskId,
    dialect::v1::message::MAX_PARTS,
    grpc::{
        generated::v1 as pb,
        read::{expected, filled, lacks, list, need_text, object, role, role_number, text},
        values,
    },
    json::read::{Path, Read},
};

/// Reads a message.
pub(super) fn decode(message: pb::Message, path: &Path<'_>) -> Read<Message> {
    Ok(Message {
        id: need_text(message.message_id, path, "messageId")?.into(),
        role: role(message.role, path)?,
        parts: decode_parts(message.parts, path, MAX_PARTS)?,
        context_id: text(message.context_id).map(ContextId::from),
        task_id: text(message.task_id).map(TaskId::from),
        reference_task_ids: list(message.reference_task_ids, path, "referenceTaskIds", |id, path| {
            filled(id, path).map(TaskId::from)
        })?,
        extensions: message.extensions,
        metadata: object(message.metadata, path, "metadata")?,
    })
}

/// Writes a message.
pub(super) fn encode(message: &Message) -> pb::Message {
    let id = |id: Option<&str>| id.unwrap_or_default().to_owned();
    pb::Message {
        message_id: message.id.as_str().to_owned(),
        context_id: id(message.context_id.as_ref().map(ContextId::as_str)),
        task_id: id(message.task_id.as_ref().map(TaskId::as_str)),
        role: role_number(message.role),
        parts: encode_parts(&message.parts),
        metadata: message.metadata.as_ref().map(values::pack_object),
        extensions: message.extensions.clone(),
        reference_task_ids: message.reference_task_ids.iter().map(|id| id.as_str().to_owned()).collect(),
    }
}

/// Reads the parts of a message or an artifact: at least one, and at most `max`.
pub(super) fn decode_parts(parts: Vec<pb::Part>, path: &Path<'_>, max: usize) -> Read<Vec<Part>> {
    match parts.len() {
        0 => Err(lacks(path, "parts", "at least one part")),
        length if length > max => Err(expected(&Path::Field(path, "parts"), &format!("at most {max} parts"))),
        _ => list(parts, path, "parts", decode_part),
    }
}

/// Writes the parts of a message or an artifact.
pub(super) fn encode_parts(parts: &[Part]) -> Vec<pb::Part> {
    parts.iter().map(encode_part).collect()
}

fn decode_part(part: pb::Part, path: &Path<'_>) -> Read<Part> {
    use pb::part::Content as Wire;
    Ok(Part {
        content: match part.content {
            Some(Wire::Text(text)) => Content::Text(text),
            Some(Wire::Raw(bytes)) => Content::Raw(bytes),
            Some(Wire::Url(url)) => Content::Url(url),
            Some(Wire::Data(data)) => {
                let path = Path::Field(path, "data");
                Content::Data(values::value(&data).map_err(|problem| expected(&path, &problem))?)
            }
            None => return Err(expected(path, "one of text, raw, url, data")),
        },
        media_type: text(part.media_type),
        filename: text(part.filename),
        metadata: object(part.metadata, path, "metadata")?,
    })
}

fn encode_part(part: &Part) -> pb::Part {
    use pb::part::Content as Wire;
    pb::Part {
        content: Some(match &part.content {
            Content::Text(text) => Wire::Text(text.clone()),
            Content::Raw(bytes) => Wire::Raw(bytes.clone()),
            Content::Url(url) => Wire::Url(url.clone()),
            Content::Data(json) => Wire::Data(values::pack_value(json)),
        }),
        metadata: part.metadata.as_ref().map(values::pack_object),
        filename: part.filename.clone().unwrap_or_default(),
        media_type: part.media_type.clone().unwrap_or_default(),
    }
}
