//! What is said: messages and their parts.

use crate::{ContextId, Json, MessageId, TaskId};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The client's side.
    User,
    /// The agent's side.
    Agent,
}

/// One thing said by one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Made by the sender.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// At least one.
    pub parts: Vec<Part>,
    /// The conversation it belongs to.
    pub context_id: Option<ContextId>,
    /// The task it belongs to.
    pub task_id: Option<TaskId>,
    /// Other tasks it speaks of.
    pub reference_task_ids: Vec<TaskId>,
    /// URIs of the extensions it uses.
    pub extensions: Vec<String>,
    /// A JSON object.
    pub metadata: Option<Json>,
}

impl Message {
    /// A message with an id, a side and its parts, and nothing else.
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

/// One piece of a message or an artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it holds.
    pub content: Content,
    /// Its media type, where one was given.
    pub media_type: Option<String>,
    /// A file name, where one was given.
    pub filename: Option<String>,
    /// A JSON object.
    pub metadata: Option<Json>,
}

impl Part {
    /// A part with this content and nothing else.
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

/// What a part holds: exactly one of these.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// The bytes of a file.
    Raw(Vec<u8>),
    /// Where a file can be had.
    Url(String),
    /// Any JSON value.
    Data(Json),
}
