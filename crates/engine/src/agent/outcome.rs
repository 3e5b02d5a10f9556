//! What an agent records during a turn, and the result of the turn.

use std::error::Error;

use bytes::Bytes;
use protocol::{Artifact, ArtifactId, Content, Json, Message, Part};

use super::{AgentError, AgentResult, Parts, authentication, parts::agent_message};
use crate::store::JournalStep;

/// One unit of progress that an agent records during a turn.
#[derive(Debug)]
#[non_exhaustive]
pub enum Update {
    /// Status `working`. The message, if any, is a progress event and does not enter the history.
    Working(Option<Message>),
    /// A complete artifact or one chunk of it.
    Artifact {
        /// The artifact or the next chunk. An artifact whose first chunk has no name is named
        /// `<skill>-result` when the client requested a skill.
        artifact: Artifact,
        /// Append to the recorded artifact instead of replacing it. The first chunk of an artifact is never
        /// appended, whatever this is.
        append: bool,
        /// The last chunk of this artifact.
        last: bool,
    },
    /// Checkpoint, for the next attempt or turn. Empty bytes remove it.
    Save(Bytes),
    /// A step that has begun or, with its output, finished. Only [`Turn::step`](super::Turn::step) and
    /// [`Turn::call`](super::Turn::call) record steps: [`Record::update`](super::Record::update) rejects this.
    Step(JournalStep),
    /// Ends the turn with this message, like [`Outcome::Message`](super::Outcome::Message).
    Message(Message),
}

/// Approximate size of an entry of the log without its parts: ids, names and the JSON around them.
const ENTRY_SIZE: u64 = 128;

impl Update {
    /// The steps among updates.
    pub(super) fn steps(updates: &[Self]) -> Vec<JournalStep> {
        let step = |update: &Self| if let Self::Step(step) = update { Some(step.clone()) } else { None };
        updates.iter().filter_map(step).collect()
    }

    /// Approximate size that counts towards the size limit of the task, in bytes. An entry without content counts too,
    /// so that a stream of empty updates reaches the limit. A bare `working` is recorded once per turn and counts
    /// nothing; progress messages have a limit of their own.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Working(_) | Self::Save(_) | Self::Step(_) => 0,
            Self::Message(message) => ENTRY_SIZE + message_size(message),
            Self::Artifact { artifact, .. } => ENTRY_SIZE + artifact_size(artifact),
        }
    }

    /// Approximate size of a progress message in the log, in bytes; 0 for every other update.
    pub(crate) fn progress_size(&self) -> u64 {
        if let Self::Working(Some(message)) = self { ENTRY_SIZE + message_size(message) } else { 0 }
    }

    /// Approximate size in memory, in bytes.
    pub(super) fn queued_size(&self) -> u64 {
        let outside_the_log = match self {
            Self::Save(bytes) => bytes.len(),
            Self::Step(step) => step.size(),
            Self::Working(_) | Self::Artifact { .. } | Self::Message(_) => 0,
        };
        ENTRY_SIZE + self.size() + self.progress_size() + outside_the_log as u64
    }
}

/// The result of a turn. The constructors cover the usual ones:
///
/// ```
/// # use a2ad_engine::Outcome;
/// Outcome::artifact("shout", "HELLO");
/// Outcome::ask("What shall I shout?");
/// Outcome::fail("the loudspeaker does not respond");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Task state `completed`.
    Done {
        /// Complete artifacts that are recorded with the final status. One without a name is named after the
        /// requested skill (`<skill>-result`), else after its id.
        artifacts: Vec<Artifact>,
        /// Final status message.
        message: Option<Message>,
    },
    /// Completed with this message. If the client waits for the reply and the task is not visible to it yet,
    /// the reply is the bare message and the task stays hidden; otherwise it is the final status message.
    Message(Message),
    /// Task state `failed`, or another attempt.
    Failed {
        /// The reason, shown to the client.
        message: Option<Message>,
        /// The runner may retry the turn with backoff.
        retryable: bool,
    },
    /// Task state `rejected`.
    Rejected {
        /// The reason, shown to the client.
        message: Option<Message>,
    },
    /// Task state `input-required`.
    NeedInput {
        /// The question or requirement, shown to the client.
        message: Message,
    },
    /// Task state `auth-required`; in the draft of A2A `input-required`.
    NeedAuth {
        /// The requirement, shown to the client. A message without a data part that has `schemes` gets
        /// `{"schemes":["Bearer"]}`.
        message: Message,
    },
    /// Another outcome, and what is recorded in the same commit; made by [`Record::then`](super::Record::then).
    With {
        /// What is recorded before the outcome.
        updates: Vec<Update>,
        /// How the turn ends.
        outcome: Box<Outcome>,
    },
}

impl Outcome {
    /// Completed without a final message.
    pub fn done() -> Self {
        Self::Done { artifacts: Vec::new(), message: None }
    }

    /// Completed with a final status message.
    pub fn done_with(message: impl Into<Parts>) -> Self {
        Self::Done { artifacts: Vec::new(), message: Some(agent_message(message)) }
    }

    /// Completed with one artifact. Its name is its id, or `<skill>-result` when the client requested a skill.
    pub fn artifact(id: impl Into<ArtifactId>, parts: impl Into<Parts>) -> Self {
        Artifact { name: None, ..Artifact::new(id, parts.into().into()) }.into()
    }

    /// Replies with a bare message instead of a task; see [`Outcome::Message`].
    pub fn message(message: impl Into<Parts>) -> Self {
        Self::Message(agent_message(message))
    }

    /// Asks the client for input; its next message starts the task's next turn.
    pub fn ask(question: impl Into<Parts>) -> Self {
        Self::NeedInput { message: agent_message(question) }
    }

    /// Asks the client for credentials; its next message starts the task's next turn. They are sent in headers: a
    /// credential inside a message does not identify the caller.
    ///
    /// The message gets a data part that names the authentication scheme `Bearer`, unless it has one already:
    /// `{"schemes": ["Basic"], "credentials": "…"}`, for example. [`Self::ask_for_credentials_of`] names other schemes.
    pub fn ask_for_credentials(request: impl Into<Parts>) -> Self {
        Self::NeedAuth { message: agent_message(request) }
    }

    /// Asks the client for credentials of one of these authentication schemes.
    ///
    /// ```
    /// # use a2ad_engine::Outcome;
    /// Outcome::ask_for_credentials_of(&["OAuth2", "Basic"], "Sign in to the archive, then reply.");
    /// ```
    pub fn ask_for_credentials_of<S: AsRef<str>>(schemes: &[S], request: impl Into<Parts>) -> Self {
        let mut parts = Vec::from(request.into());
        if !schemes.is_empty() {
            parts.push(authentication::part(schemes));
        }
        Self::ask_for_credentials(parts)
    }

    /// Failed for good.
    pub fn fail(reason: impl Into<Parts>) -> Self {
        Self::Failed { message: Some(agent_message(reason)), retryable: false }
    }

    /// Failed; the runner retries the turn with backoff while attempts are left.
    pub fn retry(reason: impl Into<Parts>) -> Self {
        Self::Failed { message: Some(agent_message(reason)), retryable: true }
    }

    /// Rejected: the agent does not do what it was asked for.
    pub fn reject(reason: impl Into<Parts>) -> Self {
        Self::Rejected { message: Some(agent_message(reason)) }
    }

    /// The complete artifacts that are recorded with the final status.
    pub(crate) fn artifacts(&self) -> &[Artifact] {
        match self {
            Self::Done { artifacts, .. } => artifacts,
            Self::With { outcome, .. } => outcome.artifacts(),
            _ => &[],
        }
    }

    /// Another outcome, with what is recorded beside this one.
    pub(crate) fn replace(self, other: Self) -> Self {
        match self {
            Self::With { updates, outcome } => {
                Self::With { updates, outcome: Box::new(outcome.replace(other)) }
            }
            _ => other,
        }
    }

    /// Approximate size in the log, in bytes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Done { artifacts, message } => {
                artifacts.iter().map(artifact_size).sum::<u64>() + message.as_ref().map_or(0, message_size)
            }
            Self::Failed { message, .. } | Self::Rejected { message } => {
                message.as_ref().map_or(0, message_size)
            }
            Self::Message(message) | Self::NeedInput { message } | Self::NeedAuth { message } => {
                message_size(message)
            }
            Self::With { updates, outcome } => updates.iter().map(Update::size).sum::<u64>() + outcome.size(),
        }
    }
}

impl From<Artifact> for Outcome {
    fn from(artifact: Artifact) -> Self {
        Self::Done { artifacts: vec![artifact], message: None }
    }
}

/// What a function given to [`agent_fn`](super::agent_fn) may return. A text or parts are an artifact with the id
/// `result`; `()` is completed without a result.
pub trait IntoOutcome {
    /// The outcome of the turn.
    fn into_outcome(self) -> AgentResult<Outcome>;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> AgentResult<Outcome> {
        Ok(self)
    }
}

impl IntoOutcome for Artifact {
    fn into_outcome(self) -> AgentResult<Outcome> {
        Ok(self.into())
    }
}

impl IntoOutcome for String {
    fn into_outcome(self) -> AgentResult<Outcome> {
        Ok(Outcome::artifact("result", self))
    }
}

impl IntoOutcome for &str {
    fn into_outcome(self) -> AgentResult<Outcome> {
        Ok(Outcome::artifact("result", self))
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> AgentResult<Outcome> {
        Ok(Outcome::done())
    }
}

impl IntoOutcome for Part {
    fn into_outcome(self) -> AgentResult<Outcome> {
        Ok(Outcome::artifact("result", self))
    }
}

impl IntoOutcome for Vec<Part> {
    fn into_outcome(self) -> AgentResult<Outcome> {
        Ok(Outcome::artifact("result", self))
    }
}

/// The error may be anything that converts into a boxed error: also a text, or `anyhow::Error`.
impl<T: IntoOutcome, E: Into<Box<dyn Error + Send + Sync>>> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> AgentResult<Outcome> {
        self.map_err(AgentError::new)?.into_outcome()
    }
}

/// Approximate size of a message in the log, in bytes.
pub(crate) fn message_size(message: &Message) -> u64 {
    parts_size(&message.parts) + json_size(message.metadata.as_ref())
}

/// Approximate size of an artifact in the log, in bytes.
pub(super) fn artifact_size(artifact: &Artifact) -> u64 {
    parts_size(&artifact.parts) + json_size(artifact.metadata.as_ref())
}

fn parts_size(parts: &[Part]) -> u64 {
    let content = |part: &Part| match &part.content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Raw(bytes) => bytes.len() / 3 * 4,
        Content::Data(json) => json.as_str().len(),
    };
    parts.iter().map(|part| content(part) as u64 + json_size(part.metadata.as_ref())).sum()
}

fn json_size(json: Option<&Json>) -> u64 {
    json.map_or(0, |json| json.as_str().len() as u64)
}
