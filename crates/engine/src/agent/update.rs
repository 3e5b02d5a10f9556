//! What an agent records during a turn.

use bytes::Bytes;
use protocol::{Artifact, Content, Json, Message, Part};

/// One unit of progress that an agent records during a turn.
#[derive(Debug)]
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
    /// Ends the turn with this message, like [`Outcome::Message`](super::Outcome::Message).
    Message(Message),
}

/// Approximate size of an entry of the log without its parts: ids, names and the JSON around them.
const ENTRY_SIZE: u64 = 128;

impl Update {
    /// Approximate size in the log, in bytes. An entry without content counts too, so that a stream of empty
    /// updates reaches the task's size limit. A bare `working` is recorded once per turn and counts nothing.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Working(None) | Self::Save(_) => 0,
            Self::Working(Some(message)) | Self::Message(message) => ENTRY_SIZE + message_size(message),
            Self::Artifact { artifact, .. } => ENTRY_SIZE + artifact_size(artifact),
        }
    }

    /// Approximate size in memory, in bytes.
    pub(super) fn queued_size(&self) -> u64 {
        let saved = if let Self::Save(bytes) = self { bytes.len() as u64 } else { 0 };
        ENTRY_SIZE + self.size() + saved
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
