//! Tasks, their status and artifacts.

use crate::{
    Artifact, Task, TaskStatus,
    dialect::v03_proto::message::MAX_PARTS,
    grpc::{
        generated::v03 as pb,
        read::{list, maybe, need, need_text, object, state, text, time, timestamp},
        values,
    },
    json::read::{Path, Read},
};

use super::message;

/// Reads a task.
pub(super) fn decode(task: pb::Task, path: &Path<'_>) -> Read<Task> {
    Ok(Task {
        id: need_text(task.id, path, "id")?.into(),
        context_id: task.context_id.into(),
        status: need(task.status, path, "status", "a task status", decode_status)?,
        // Chunks were appended over time, so the limit per chunk does not apply; the size of a task is
        // limited instead.
        artifacts: list(task.artifacts, path, "artifacts", |artifact, path| {
            decode_parts_of(artifact, path, usize::MAX)
        })?,
        history: list(task.history, path, "history", message::decode)?,
        metadata: object(task.metadata, path, "metadata")?,
        created_at: None,
    })
}

/// Writes a task.
pub(super) fn encode(task: &Task) -> pb::Task {
    pb::Task {
        id: task.id.as_str().to_owned(),
        context_id: task.context_id.as_str().to_owned(),
        status: Some(encode_status(&task.status)),
        artifacts: task.artifacts.iter().map(encode_artifact).collect(),
        history: task.history.iter().map(message::encode).collect(),
        metadata: task.metadata.as_ref().map(values::pack_object),
    }
}

/// Reads a status.
pub(super) fn decode_status(status: pb::TaskStatus, path: &Path<'_>) -> Read<TaskStatus> {
    Ok(TaskStatus {
        state: state(status.state, path, "state")?,
        message: maybe(status.update, path, "message", message::decode)?,
        timestamp: maybe(status.timestamp, path, "timestamp", timestamp)?,
    })
}

/// Writes a status.
pub(super) fn encode_status(status: &TaskStatus) -> pb::TaskStatus {
    pb::TaskStatus {
        state: i32::from(status.state.number()),
        update: status.message.as_ref().map(message::encode),
        timestamp: status.timestamp.map(time),
    }
}

/// Reads the artifact of an update.
pub(super) fn decode_artifact(artifact: pb::Artifact, path: &Path<'_>) -> Read<Artifact> {
    decode_parts_of(artifact, path, MAX_PARTS)
}

fn decode_parts_of(artifact: pb::Artifact, path: &Path<'_>, max_parts: usize) -> Read<Artifact> {
    Ok(Artifact {
        id: need_text(artifact.artifact_id, path, "artifactId")?.into(),
        name: text(artifact.name),
        description: text(artifact.description),
        parts: message::decode_parts(artifact.parts, path, "parts", max_parts)?,
        extensions: artifact.extensions,
        metadata: object(artifact.metadata, path, "metadata")?,
    })
}

/// Writes an artifact.
pub(super) fn encode_artifact(artifact: &Artifact) -> pb::Artifact {
    pb::Artifact {
        artifact_id: artifact.id.as_str().to_owned(),
        name: artifact.name.clone().unwrap_or_default(),
        description: artifact.description.clone().unwrap_or_default(),
        parts: message::encode_parts(&artifact.parts),
        metadata: artifact.metadata.as_ref().map(values::pack_object),
        extensions: artifact.extensions.clone(),
    }
}
