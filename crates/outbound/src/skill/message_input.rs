//! What a backend with `input = "message"` gets: the message of the call, the conversation before it, and the data in it.
//!
//! A call that goes on after a question, or in another attempt, gets the same message as before; the client's answer is passed
//! on as the backend asked for it.

use std::sync::Arc;

use bytes::Bytes;
use engine::{AgentResult, Turn};
use protocol::{Content, Json, Message, dialect::v1, json::write::Writer};

/// The message with which a call began, and what the backend gets of it.
pub(crate) struct MessageInput {
    pub(crate) message: Arc<Message>,
    /// One JSON object.
    pub(crate) json: Bytes,
}

impl MessageInput {
    /// That of a call which began with the message with this id, or with that of the turn.
    pub(crate) async fn new(turn: &Turn, began_with: Option<&str>, arguments: &Json) -> AgentResult<Self> {
        let earlier = began_with.and_then(|id| turn.history.iter().find(|message| message.id.as_str() == id));
        let message = earlier.map_or_else(|| Arc::clone(&turn.message), |message| Arc::new(message.clone()));
        let history = turn.conversation_before(&message).await?;
        let has_data = message.parts.iter().any(|part| matches!(part.content, Content::Data(_)));
        let mut writer = Writer::new();
        writer.object(|out| {
            v1::message::encode(out.key("message"), &message);
            out.key("arguments").raw(if has_data { arguments.as_str() } else { "null" });
            out.key("history").array(&history, v1::message::encode);
            out.text("task", turn.task_id.as_str());
            out.text("context", turn.context_id.as_str());
            out.text("skill", turn.skill.as_deref().unwrap_or_default());
        });
        Ok(Self { message, json: writer.finish().into() })
    }
}
