//! The content of a message or artifact, made from a text or from parts.

use protocol::{Json, Message, Part, Role};

/// The parts of a message or artifact. Made from a text, from JSON, from one part, or from several.
#[derive(Clone, Debug)]
pub struct Parts(Vec<Part>);

impl From<&str> for Parts {
    fn from(text: &str) -> Self {
        Self(vec![Part::text(text)])
    }
}

impl From<String> for Parts {
    fn from(text: String) -> Self {
        Self(vec![Part::text(text)])
    }
}

impl From<&String> for Parts {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Json> for Parts {
    fn from(data: Json) -> Self {
        Part::data(data).into()
    }
}

impl From<Part> for Parts {
    fn from(part: Part) -> Self {
        Self(vec![part])
    }
}

impl From<Vec<Part>> for Parts {
    fn from(parts: Vec<Part>) -> Self {
        Self(parts)
    }
}

impl<const N: usize> From<[Part; N]> for Parts {
    fn from(parts: [Part; N]) -> Self {
        Self(parts.into())
    }
}

impl From<Parts> for Vec<Part> {
    fn from(parts: Parts) -> Self {
        parts.0
    }
}

/// A message of the agent, not yet assigned to a task.
pub(crate) fn agent_message(parts: impl Into<Parts>) -> Message {
    Message::new(uuid::Uuid::new_v4().to_string(), Role::Agent, parts.into().0)
}
