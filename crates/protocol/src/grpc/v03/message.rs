//! Messages and parts.

use crate::{
    Content, ContextId, Message, Part, TaskId,
    dialect::{
        legacy::part,
        v03_proto::message::{
            MAX_PARTS, from_base64_field, metadata_with_references, take_references, to_base64_field,
        },
    },
    grpc::{
        generated::v03 as pb,
        read::{expected, lacks, list, object, role, role_number, text},
        values,
    },
    json::read::{Path, Read},
};

/// Reads a message. A missing id is accepted; the receiver assigns one.
pub(super) fn decode(message: pb::Message, path: &Path<'_>) -> Read<Message> {
    let (metadata, reference_task_ids) = take_references(object(message.metadata, path, "metadata")?);
    Ok(Message {
        id: message.message_id.into(),
        role: role(message.role, path)?,
        parts: decode_parts(message.content, path, "content", MAX_PARTS)?,
        context_id: text(message.context_id).map(ContextId::from),
        task_id: text(message.task_id).map(TaskId::from),
        reference_task_ids,
        extensions: message.extensions,
        metadata,
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
        content: encode_parts(&message.parts),
        metadata: metadata_with_references(message).as_ref().map(values::pack_object),
        extensions: message.extensions.clone(),
    }
}

/// Reads the parts of a message or an artifact: at least one, and at most `max`.
pub(super) fn decode_parts(parts: Vec<pb::Part>, path: &Path<'_>, name: &str, max: usize) -> Read<Vec<Part>> {
    match parts.len() {
        0 => Err(lacks(path, name, "at least one part")),
        length if length > max => Err(expected(&Path::Field(path, name), &format!("at most {max} parts"))),
        _ => list(parts, path, name, decode_part),
    }
}

/// Writes the parts of a message or an artifact.
pub(super) fn encode_parts(parts: &[Part]) -> Vec<pb::Part> {
    parts.iter().map(encode_part).collect()
}

fn decode_part(part: pb::Part, path: &Path<'_>) -> Read<Part> {
    use pb::part::Part as Wire;
    let metadata = object(part.metadata, path, "metadata")?;
    Ok(match part.part {
        Some(Wire::Text(text)) => part::part_with_carried(Content::Text(text), metadata),
        Some(Wire::Data(data)) => {
            let path = Path::Field(path, "data");
            // An object without members may be omitted.
            let data = values::object(&data.data.unwrap_or_default());
            let data = data.map_err(|problem| expected(&Path::Field(&path, "data"), &problem))?;
            let (data, metadata) = part::unwrap(data, metadata);
            part::part_with_carried(Content::Data(data), metadata)
        }
        Some(Wire::File(file)) => Part { metadata, ..decode_file(file, &Path::Field(path, "file"))? },
        None => return Err(expected(path, "one of text, file, data")),
    })
}

fn decode_file(file: pb::FilePart, path: &Path<'_>) -> Read<Part> {
    use pb::file_part::File as Wire;
    let content = match file.file {
        Some(Wire::FileWithUri(uri)) => Content::Url(uri),
        Some(Wire::FileWithBytes(bytes)) => Content::Raw(from_base64_field(bytes)),
        None => return Err(expected(path, "one of fileWithBytes, fileWithUri")),
    };
    Ok(Part { media_type: text(file.mime_type), filename: text(file.name), ..Part::new(content) })
}

fn encode_part(part: &Part) -> pb::Part {
    use pb::{file_part::File, part::Part as Wire};
    let file = |file| {
        let file = pb::FilePart {
            file: Some(file),
            mime_type: part.media_type.clone().unwrap_or_default(),
            name: part.filename.clone().unwrap_or_default(),
        };
        (Wire::File(file), part.metadata.clone())
    };
    let (content, metadata) = match &part.content {
        Content::Text(text) => (Wire::Text(text.clone()), part::metadata_with_carried(part, "text/plain")),
        Content::Data(data) => {
            let (data, metadata) = part::wrap(data, part::metadata_with_carried(part, "application/json"));
            (Wire::Data(pb::DataPart { data: Some(values::pack_object(&data)) }), metadata)
        }
        Content::Raw(bytes) => file(File::FileWithBytes(to_base64_field(bytes).into_bytes())),
        Content::Url(uri) => file(File::FileWithUri(uri.clone())),
    };
    pb::Part { part: Some(content), metadata: metadata.as_ref().map(values::pack_object) }
}
