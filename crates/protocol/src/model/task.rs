//! The task: what became of a message that was work.

use crate::{ArtifactId, ContextId, Json, Message, Part, TaskId, Timestamp};

/// Work that was asked for, how it stands and what it has produced.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name towards clients.
    pub id: TaskId,
    /// The conversation it belongs to.
    pub context_id: ContextId,
    /// How it stands.
    pub status: TaskStatus,
    /// What it has produced, in order of first appearance.
    pub artifacts: Vec<Artifact>,
    /// What was said, oldest first.
    pub history: Vec<Message>,
    /// A JSON object.
    pub metadata: Option<Json>,
}

/// The state of a task since a point in time, and what the agent says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskStatus {
    /// The state.
    pub state: TaskState,
    /// What the agent says about it.
    pub message: Option<Message>,
    /// Since when; peers may leave it out, we never do.
    pub timestamp: Option<Timestamp>,
}

/// The states of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// A foreign agent said nothing we understand; our engine never produces it.
    Unspecified,
    /// Received and recorded.
    Submitted,
    /// Being worked on.
    Working,
    /// Done.
    Completed,
    /// Ended without success.
    Failed,
    /// Ended at the client's wish.
    Canceled,
    /// Waits for the client to say more.
    InputRequired,
    /// The agent declined it.
    Rejected,
    /// Waits for the client to authenticate.
    AuthRequired,
}

impl TaskState {
    /// The number of this state in the protobuf files of every generation, and in our store.
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

    /// The state of a number.
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

    /// Whether nothing follows within this turn.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Whether the task waits for its client.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Whether a blocking call returns: terminal or interrupted.
    pub fn is_settled(self) -> bool {
        self.is_terminal() || self.is_interrupted()
    }
}

/// Something a task produced.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// Its name within the task.
    pub id: ArtifactId,
    /// A name for people.
    pub name: Option<String>,
    /// A sentence about it.
    pub description: Option<String>,
    /// At least one.
    pub parts: Vec<Part>,
    /// URIs of the extensions it uses.
    pub extensions: Vec<String>,
    /// A JSON object.
    pub metadata: Option<Json>,
}

impl Artifact {
    /// An artifact named after its id.
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
