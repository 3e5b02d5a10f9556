//! What an agent records during a turn.

use bytes::Bytes;
use protocol::{Artifact, Content, Json, Message, Part};

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
