//! Events carried by a stream or posted to a webhook.

use crate::{Artifact, ContextId, Json, Message, Task, TaskId, TaskStatus};

/// One event of a task's stream. Usually one frame on the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A snapshot of the whole task.
    Task(Task),
    /// A direct response from the agent; no task exists.
    Message(Message),
    /// The task's status changed, or the agent reported progress.
    Status(StatusUpdate),
    /// The task produced an artifact or a further chunk of one.
    Artifact(ArtifactUpdate),
}

/// A new status of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusUpdate {
    /// The task whose status this is.
    pub task_id: TaskId,
    /// The context of that task.
    pub context_id: ContextId,
    /// Replaces the task's previous status.
    pub status: TaskStatus,
    /// A JSON object.
    pub metadata: Option<Json>,
}

/// An artifact of one task, or a chunk of one.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactUpdate {
    /// The task that produced it.
    pub task_id: TaskId,
    /// The context of that task.
    pub context_id: ContextId,
    /// The whole artifact, or only the new chunk if `append` is set.
    pub artifact: Artifact,
    /// Append the parts to the artifact with this id instead of replacing it.
    pub append: bool,
    /// No further chunk follows for this artifact.
    pub last_chunk: bool,
    /// A JSON object.
    pub metadata: Option<Json>,
}
