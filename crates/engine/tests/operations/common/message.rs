//! A builder for client messages.

use protocol::{ContextId, Json, Message, Part, PushConfig, Role, SendMessage, TaskId};

/// A `SendMessage` request under construction.
#[derive(Clone)]
pub(crate) struct MessageBuilder(SendMessage);

/// A message with only this text.
pub(crate) fn msg(text: &str) -> MessageBuilder {
    let id = uuid::Uuid::new_v4().to_string();
    MessageBuilder(SendMessage::new(Message::new(id, Role::User, vec![Part::text(text)])))
}

impl MessageBuilder {
    /// Sets the message id.
    pub(crate) fn id(mut self, id: &str) -> Self {
        self.0.message.id = id.into();
        self
    }

    /// Sets the role.
    pub(crate) fn role(mut self, role: Role) -> Self {
        self.0.message.role = role;
        self
    }

    /// Sets the task id.
    pub(crate) fn to(mut self, task: &TaskId) -> Self {
        self.0.message.task_id = Some(task.clone());
        self
    }

    /// A client-chosen task id and no message id, as in the draft dialect.
    pub(crate) fn client_task(self, task: &str) -> Self {
        self.to(&task.into()).id("")
    }

    /// Requests a skill.
    /// Adds a data part.
    pub(crate) fn data(mut self, json: &str) -> Self {
        self.0.message.parts.push(Part::data(Json::parse(json).unwrap()));
        self
    }

    pub(crate) fn skill(mut self, id: &str) -> Self {
        self.0.skill = Some(id.into());
        self
    }

    /// Requests a skill through the request metadata.
    pub(crate) fn skill_in_metadata(mut self, id: &str) -> Self {
        self.0.metadata = Json::parse(&format!(r#"{{"skillId":"{id}"}}"#)).ok();
        self
    }

    /// Sets the context id.
    pub(crate) fn context(mut self, context: impl Into<ContextId>) -> Self {
        self.0.message.context_id = Some(context.into());
        self
    }

    /// Does not wait for the outcome.
    pub(crate) fn return_immediately(mut self) -> Self {
        self.0.return_immediately = true;
        self
    }

    /// Sets the history length of the reply.
    /// Registers a webhook with the message.
    pub(crate) fn webhook(mut self, url: &str) -> Self {
        self.0.push = Some(PushConfig::new(url));
        self
    }

    pub(crate) fn history(mut self, length: u32) -> Self {
        self.0.history_length = Some(length);
        self
    }
}

impl From<MessageBuilder> for SendMessage {
    fn from(msg: MessageBuilder) -> Self {
        msg.0
    }
}
