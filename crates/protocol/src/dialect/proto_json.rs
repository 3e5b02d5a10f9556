//! What the JSON forms of the two protobuf files, of 0.3 and of 1.0, have in common: tasks, artifacts and frames, which
//! differ only in the parts, messages and statuses in them.

use crate::{
    Artifact, Event, Message, Part, Task, TaskStatus,
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{ArtifactUpdate, StatusUpdate},
};

/// What differs between the two files.
pub(super) trait ProtoJson {
    /// Reads the `parts` of an artifact: at most `max`, and in a request at least one.
    fn decode_parts(object: &Object<'_, '_>, max: usize) -> Read<Vec<Part>>;
    /// Writes a list of parts.
    fn encode_parts(writer: &mut Writer, parts: &[Part]);
    fn encode_message(writer: &mut Writer, message: &Message);
    fn encode_status(writer: &mut Writer, status: &TaskStatus);
    /// Writes the members that only a settled status has in a frame.
    fn encode_settled(writer: &mut Writer);
}

/// Writes a task, with the member `artifacts`, which may be empty, or without it.
pub(super) fn encode_task<F: ProtoJson>(writer: &mut Writer, task: &Task, with_artifacts: bool) {
    writer.object(|writer| {
        writer.text("id", task.id.as_str());
        writer.text("contextId", task.context_id.as_str());
        F::encode_status(writer.key("status"), &task.status);
        if with_artifacts {
            writer.key("artifacts").array(&task.artifacts, encode_artifact::<F>);
        }
        if !task.history.is_empty() {
            writer.key("history").array(&task.history, F::encode_message);
        }
        writer.maybe_json("metadata", task.metadata.as_ref());
    });
}

/// Reads an artifact with at most this many parts.
pub(super) fn decode_artifact<F: ProtoJson>(node: Node<'_, '_>, max_parts: usize) -> Read<Artifact> {
    let object = node.object()?;
    Ok(Artifact {
        id: object.need_text("artifactId")?.into(),
        name: object.text("name")?,
        description: object.text("description")?,
        parts: F::decode_parts(&object, max_parts)?,
        extensions: object.texts("extensions")?,
        metadata: object.json_object("metadata")?,
    })
}

/// Writes an artifact.
pub(super) fn encode_artifact<F: ProtoJson>(writer: &mut Writer, artifact: &Artifact) {
    writer.object(|writer| {
        writer.text("artifactId", artifact.id.as_str());
        writer.maybe_text("name", artifact.name.as_deref());
        writer.maybe_text("description", artifact.description.as_deref());
        F::encode_parts(writer.key("parts"), &artifact.parts);
        writer.maybe_json("metadata", artifact.metadata.as_ref());
        writer.texts_unless_empty("extensions", &artifact.extensions);
    });
}

/// Writes a frame: an object with exactly one of four members.
pub(super) fn encode_event<F: ProtoJson>(writer: &mut Writer, event: &Event) {
    writer.object(|writer| match event {
        Event::Task(task) => encode_task::<F>(writer.key("task"), task, !task.artifacts.is_empty()),
        Event::Message(message) => F::encode_message(writer.key("message"), message),
        Event::Status(update) => encode_status_update::<F>(writer.key("statusUpdate"), update),
        Event::Artifact(update) => encode_artifact_update::<F>(writer.key("artifactUpdate"), update),
    });
}

fn encode_status_update<F: ProtoJson>(writer: &mut Writer, update: &StatusUpdate) {
    writer.object(|writer| {
        writer.text("taskId", update.task_id.as_str());
        writer.text("contextId", update.context_id.as_str());
        F::encode_status(writer.key("status"), &update.status);
        if update.status.state.is_settled() {
            F::encode_settled(writer);
        }
        writer.maybe_json("metadata", update.metadata.as_ref());
    });
}

/// Reads the update of an artifact with at most this many parts.
pub(super) fn decode_artifact_update<F: ProtoJson>(
    node: Node<'_, '_>,
    max_parts: usize,
) -> Read<ArtifactUpdate> {
    let object = node.object()?;
    Ok(ArtifactUpdate {
        task_id: object.need_text("taskId")?.into(),
        context_id: object.text_or_empty("contextId")?.into(),
        artifact: object
            .need("artifact", "an artifact", |artifact| decode_artifact::<F>(artifact, max_parts))?,
        append: object.flag("append")?.unwrap_or_default(),
        last_chunk: object.flag("lastChunk")?.unwrap_or_default(),
        metadata: object.json_object("metadata")?,
    })
}

fn encode_artifact_update<F: ProtoJson>(writer: &mut Writer, update: &ArtifactUpdate) {
    writer.object(|writer| {
        writer.text("taskId", update.task_id.as_str());
        writer.text("contextId", update.context_id.as_str());
        encode_artifact::<F>(writer.key("artifact"), &update.artifact);
        writer.flag_if_set("append", update.append);
        writer.flag_if_set("lastChunk", update.last_chunk);
        writer.maybe_json("metadata", update.metadata.as_ref());
    });
}
