//! The task: the unit of work that a message starts, with its status, artifacts and history.

use crate::{ArtifactId, ContextId, Json, Message, Part, TaskId, Timestamp};

/// A unit of work, its current status and its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The id shown to clients.
    pub id: TaskId,
    /// The context it belongs to.
    pub context_id: ContextId,
    /// The current status.
    pub status: TaskStatus,
    /// Results, in order of first appearance.
    pub artifacts: Vec<Artifact>,
    /// The messages of both sides, oldest first.
    pub history: Vec<Message>,
    /// A JSON object.
    pub metadata: Option<Json>,
    /// When it was created. Only replies to clients of platforms that expect it have it.
    pub created_at: Option<Timestamp>,
}

/// A task's state with its time and an optional message from the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskStatus {
    /// Where the task is in its life cycle.
    pub state: TaskState,
    /// The agent's message that accompanies this state.
    pub message: Option<Message>,
    /// When the state was entered. Always set by this server; other implementations may omit it.
    pub timestamp: Option<Timestamp>,
}

/// The life cycle states of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Unknown: a remote agent sent no state or one this codec does not know. The engine never produces it.
    Unspecified,
    /// Accepted and stored, not started.
    Submitted,
    /// In progress.
    Working,
    /// Finished successfully.
    Completed,
    /// Ended without success.
    Failed,
    /// Canceled on the client's request.
    Canceled,
    /// Paused until the client sends more input.
    InputRequired,
    /// Declined by the agent.
    Rejected,
    /// Paused until the client authenticates.
    AuthRequired,
}

impl TaskState {
    /// The number of this state in every version's protobuf files and in the store.
    pub fn number(self) -> u8 {
        match self {
            Self::Unspecified => 0,
            Self::Submitted => 1,
            Self::Working => 2,
            Self::Completed => 3,
            Self::Failed => 4,
            Self::Canceled => 5,
            Self::InputRequired => 6,
            Self::Rejected => 7,
            Self::AuthRequired => 8,
        }
    }

    /// The state with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }

    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Unspecified,
        Self::Submitted,
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::InputRequired,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// Whether the state ends the current turn.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Whether the task is paused until the client acts.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Whether a blocking send returns: terminal or interrupted.
    pub fn is_settled(self) -> bool {
        self.is_terminal() || self.is_interrupted()
    }
}

/// A result of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// Unique within the task.
    pub id: ArtifactId,
    /// Human-readable name.
    pub name: Option<String>,
    /// Human-readable description.
    pub description: Option<String>,
    /// At least one.
    pub parts: Vec<Part>,
    /// URIs of the extensions it uses.
    pub extensions: Vec<String>,
    /// A JSON object.
    pub metadata: Option<Json>,
}

impl Artifact {
    /// An artifact whose name equals its id.
    pub fn new(id: impl Into<ArtifactId>, parts: Vec<Part>) -> Self {
        let id = id.into();
        Self {
            name: Some(id.to_string()),
            id,
            description: None,
            parts,
            extensions: Vec::new(),
            metadata: None,
        }
    }
}
