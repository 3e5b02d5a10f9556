//! What a client says, in the words of a test.

use protocol::{ContextId, Json, Message, Part, Role, SendMessage, TaskId};

/// A message on its way to the agent.
#[derive(Clone)]
pub(crate) struct Say(SendMessage);

/// A message with this text and nothing else.
pub(crate) fn say(text: &str) -> Say {
    let id = uuid::Uuid::new_v4().to_string();
    Say(SendMessage::new(Message::new(id, Role::User, vec![Part::text(text)])))
}

impl Say {
    /// Under this message id.
    pub(crate) fn id(mut self, id: &str) -> Self {
        self.0.message.id = id.into();
        self
    }

    /// In the name of this side, whoever says it.
    pub(crate) fn by(mut self, role: Role) -> Self {
        self.0.message.role = role;
        self
    }

    /// To a task that exists.
    pub(crate) fn to(mut self, task: &TaskId) -> Self {
        self.0.message.task_id = Some(task.clone());
        self
    }

    /// To a task of this name, which its client chose, and without an id of its own: as in the first draft.
    pub(crate) fn named(self, task: &str) -> Self {
        self.to(&task.into()).id("")
    }

    /// For this skill.
    pub(crate) fn skill(mut self, id: &str) -> Self {
        self.0.skill = Some(id.into());
        self
    }

    /// The same, said in the metadata of the request.
    pub(crate) fn skill_in_metadata(mut self, id: &str) -> Self {
        self.0.metadata = Json::parse(&format!(r#"{{"skillId":"{id}"}}"#)).ok();
        self
    }

    /// In a conversation.
    pub(crate) fn context(mut self, context: impl Into<ContextId>) -> Self {
        self.0.message.context_id = Some(context.into());
        self
    }

    /// Without waiting for the outcome.
    pub(crate) fn at_once(mut self) -> Self {
        self.0.return_immediately = true;
        self
    }

    /// With so much history in the answer.
    pub(crate) fn history(mut self, length: u32) -> Self {
        self.0.history_length = Some(length);
        self
    }
}

impl From<Say> for SendMessage {
    fn from(say: Say) -> Self {
        say.0
    }
}
