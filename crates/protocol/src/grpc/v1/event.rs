//! Stream frames: exactly one of four payloads.

use prost::Message as _;

use crate::{
    Error, Event,
    grpc::{
        generated::v1 as pb,
        message,
        read::{expected, need, need_text, object},
        values,
    },
    json::read::{Path, Read},
    model::{ArtifactUpdate, StatusUpdate},
};

use super::{message as messages, task};

/// Reads a frame.
pub(in crate::grpc) fn decode(body: &[u8]) -> Result<Event, Error> {
    use pb::stream_response::Payload;
    let frame: pb::StreamResponse = message(body)?;
    let path = |name| Path::Field(&Path::Root, name);
    Ok(match frame.payload {
        Some(Payload::Task(task)) => Event::Task(task::decode(task, &path("task"))?),
        Some(Payload::Message(message)) => Event::Message(messages::decode(message, &path("message"))?),
        Some(Payload::StatusUpdate(update)) => {
            Event::Status(decode_status_update(update, &path("statusUpdate"))?)
        }
        Some(Payload::ArtifactUpdate(update)) => {
            Event::Artifact(decode_artifact_update(update, &path("artifactUpdate"))?)
        }
        None => {
            let what = "exactly one of task, message, statusUpdate, artifactUpdate";
            return Err(expected(&Path::Root, what).into());
        }
    })
}

/// Writes a frame.
pub(in crate::grpc) fn encode(event: &Event) -> Vec<u8> {
    use pb::stream_response::Payload;
    let payload = match event {
        Event::Task(task) => Payload::Task(task::encode(task)),
        Event::Message(message) => Payload::Message(messages::encode(message)),
        Event::Status(update) => Payload::StatusUpdate(pb::TaskStatusUpdateEvent {
            task_id: update.task_id.as_str().to_owned(),
            context_id: update.context_id.as_str().to_owned(),
            status: Some(task::encode_status(&update.status)),
            metadata: update.metadata.as_ref().map(values::pack_object),
        }),
        Event::Artifact(update) => Payload::ArtifactUpdate(pb::TaskArtifactUpdateEvent {
            task_id: update.task_id.as_str().to_owned(),
            context_id: update.context_id.as_str().to_owned(),
            artifact: Some(task::encode_artifact(&update.artifact)),
            append: update.append,
            last_chunk: update.last_chunk,
            metadata: update.metadata.as_ref().map(values::pack_object),
        }),
    };
    pb::StreamResponse { payload: Some(payload) }.encode_to_vec()
}

fn decode_status_update(update: pb::TaskStatusUpdateEvent, path: &Path<'_>) -> Read<StatusUpdate> {
    Ok(StatusUpdate {
        task_id: need_text(update.task_id, path, "taskId")?.into(),
        context_id: update.context_id.into(),
        status: need(update.status, path, "status", "a task status", task::decode_status)?,
        metadata: object(update.metadata, path, "metadata")?,
    })
}

fn decode_artifact_update(update: pb::TaskArtifactUpdateEvent, path: &Path<'_>) -> Read<ArtifactUpdate> {
    Ok(ArtifactUpdate {
        task_id: need_text(update.task_id, path, "taskId")?.into(),
        context_id: update.context_id.into(),
        artifact: need(update.artifact, path, "artifact", "an artifact", task::decode_artifact)?,
        append: update.append,
        last_chunk: update.last_chunk,
        metadata: object(update.metadata, path, "metadata")?,
    })
}
