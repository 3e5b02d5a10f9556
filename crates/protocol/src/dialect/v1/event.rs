//! Stream frames: an object with exactly one of four members.

use crate::{
    ArtifactId, Error, Event, Message,
    dialect::proto_json,
    json::{
        Raw,
        read::{Node, Path, Read},
        write::Writer,
    },
    model::{ArtifactUpdate, StatusUpdate},
};

use super::{Form, message, task};

/// Reads a frame.
pub fn decode(node: Node<'_, '_>) -> Read<Event> {
    let object = node.object()?;
    let events = [
        object.maybe("task", task::decode)?.map(Event::Task),
        object.maybe("message", message::decode)?.map(Event::Message),
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

/// Reads a frame from JSON bytes.
pub fn decode_bytes(bytes: &[u8]) -> Result<Event, Error> {
    Ok(decode(parse(bytes)?)?)
}

fn parse(bytes: &[u8]) -> Result<Node<'_, 'static>, Error> {
    let raw = Raw::parse(bytes)
        .map_err(|fault| Error::new(crate::ErrorKind::Parse, format!("the frame is not JSON: {fault}")))?;
    Ok(Node::new(raw, &Path::Root))
}

/// What a chunk of an artifact is, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// The artifact it belongs to.
    pub artifact_id: ArtifactId,
    /// Whether it is appended to what the artifact has already.
    pub append: bool,
    /// Whether it is the artifact's last chunk.
    pub last_chunk: bool,
}

impl ChunkHeader {
    /// The header of an update.
    pub fn of(update: &ArtifactUpdate) -> Self {
        Self { artifact_id: update.artifact.id.clone(), append: update.append, last_chunk: update.last_chunk }
    }
}

/// Reads the header of an artifact frame from JSON bytes. The parts are only checked to be JSON.
pub fn decode_chunk_header(bytes: &[u8]) -> Result<ChunkHeader, Error> {
    let header = parse(bytes)?.object()?.need("artifactUpdate", "an artifact update", |node| {
        let object = node.object()?;
        Ok(ChunkHeader {
            artifact_id: object
                .need("artifact", "an artifact", |node| node.object()?.need_text("artifactId"))?
                .into(),
            append: object.flag("append")?.unwrap_or_default(),
            last_chunk: object.flag("lastChunk")?.unwrap_or_default(),
        })
    })?;
    Ok(header)
}

/// Writes a frame.
pub fn encode(writer: &mut Writer, event: &Event) {
    proto_json::encode_event::<Form>(writer, event);
}

/// Encodes a frame into its own buffer.
pub fn encode_bytes(event: &Event) -> Vec<u8> {
    let mut writer = Writer::new();
    encode(&mut writer, event);
    writer.finish()
}

/// The frame of a message; also the reply to a send that was answered with a message.
pub fn encode_message(writer: &mut Writer, message: &Message) {
    writer.object(|writer| message::encode(writer.key("message"), message));
}

fn decode_status_update(node: Node<'_, '_>) -> Read<StatusUpdate> {
    let object = node.object()?;
    Ok(StatusUpdate {
        task_id: object.need_text("taskId")?.into(),
        context_id: object.text_or_empty("contextId")?.into(),
        status: object.need("status", "a task status", task::decode_status)?,
        metadata: object.json_object("metadata")?,
    })
}
