//! Messages and their parts.

use crate::{ContextId, Json, MessageId, TaskId};

/// Who sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The client.
    User,
    /// The agent.
    Agent,
}

/// One message from the client or the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Assigned by the sender.
    pub id: MessageId,
    /// Who sent it.
    pub role: Role,
    /// At least one in a request; responses of other implementations may have none.
    pub parts: Vec<Part>,
    /// The context it belongs to.
    pub context_id: Option<ContextId>,
    /// The task it belongs to.
    pub task_id: Option<TaskId>,
    /// Other tasks it refers to.
    pub reference_task_ids: Vec<TaskId>,
    /// URIs of the extensions it uses.
    pub extensions: Vec<String>,
    /// A JSON object.
    pub metadata: Option<Json>,
}

impl Message {
    /// A message with an id, a role and parts; every other field is empty.
    pub fn new(id: impl Into<MessageId>, role: Role, parts: Vec<Part>) -> Self {
        Self {
            id: id.into(),
            role,
            parts,
            context_id: None,
            task_id: None,
            reference_task_ids: Vec::new(),
            extensions: Vec::new(),
            metadata: None,
        }
    }

    /// The text parts, joined with a space.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match &part.content {
                Content::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join(" ")
    }
}

/// One part of a message or an artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Text, bytes, a URL or JSON.
    pub content: Content,
    /// Its media type, if given.
    pub media_type: Option<String>,
    /// A file name, if given.
    pub filename: Option<String>,
    /// A JSON object.
    pub metadata: Option<Json>,
}

impl Part {
    /// A part with this content; every other field is empty.
    pub fn new(content: Content) -> Self {
        Self { content, media_type: None, filename: None, metadata: None }
    }

    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Text(text.into()))
    }

    /// A data part.
    pub fn data(json: Json) -> Self {
        Self::new(Content::Data(json))
    }
}

/// The content of a part: exactly one of these.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// The bytes of a file, decoded.
    Raw(Vec<u8>),
    /// The URL of a file.
    Url(String),
    /// Any JSON value.
    Data(Json),
}
