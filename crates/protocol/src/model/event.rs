//! What a stream or a webhook carries.

use crate::{Artifact, ContextId, Json, Message, Task, TaskId, TaskStatus};

/// One frame of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The whole task as it stands.
    Task(Task),
    /// A bare answer; there is no task to speak of.
    Message(Message),
    /// The task's status changed, or the agent reports progress.
    Status(StatusUpdate),
    /// The task produced something, or more of it.
    Artifact(ArtifactUpdate),
}

/// A status and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusUpdate {
    /// The task.
    pub task_id: TaskId,
    /// Its conversation.
    pub context_id: ContextId,
    /// The new status.
    pub status: TaskStatus,
    /// A JSON object.
    pub metadata: Option<Json>,
}

/// An artifact, or a chunk of one, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactUpdate {
    /// The task.
    pub task_id: TaskId,
    /// Its conversation.
    pub context_id: ContextId,
    /// The artifact or the chunk.
    pub artifact: Artifact,
    /// Add the parts to the artifact of this id instead of replacing it.
    pub append: bool,
    /// Nothing more follows for this artifact.
    pub last_chunk: bool,
    /// A JSON object.
    pub metadata: Option<Json>,
}
