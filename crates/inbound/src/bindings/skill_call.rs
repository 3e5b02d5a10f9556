//! A call of one skill with plain arguments, for bindings that have no messages of their own: the send that any other
//! binding would have made for the same call, and the result in the task that it leads to.

use protocol::{Json, Message, Part, Role, SendMessage, Task, TaskState, json::write::Writer};

/// What a skill is called with.
#[derive(Debug)]
pub(crate) enum Input {
    /// A JSON value, usually an object.
    Arguments(Json),
    Text(String),
}

/// The request that calls a skill.
pub(crate) fn send(skill: &str, input: Input) -> SendMessage {
    let part = match input {
        Input::Arguments(arguments) => Part::data(arguments),
        Input::Text(text) => Part::text(text),
    };
    // No message id, so that only the idempotency key identifies a repeated request.
    let message = Message::new("", Role::User, vec![part]);
    SendMessage { metadata: Some(skill_metadata(skill)), ..SendMessage::new(message) }
}

/// The metadata that names a skill.
pub(crate) fn skill_metadata(skill: &str) -> Json {
    let mut writer = Writer::new();
    writer.object(|out| out.text("skillId", skill));
    let text = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
    Json::parse(&text).expect("the writer writes one JSON value")
}

/// The result of a task: the parts of its artifacts. A completed task without artifacts, and every other task, has the
/// message of its status instead.
pub(crate) fn result(task: &Task) -> Vec<&Part> {
    let produced: Vec<&Part> = task.artifacts.iter().flat_map(|artifact| &artifact.parts).collect();
    if task.status.state == TaskState::Completed && !produced.is_empty() {
        return produced;
    }
    task.status.message.iter().flat_map(|message| &message.parts).collect()
}
