//! Applies a compatibility profile to the reply of a send. The stored task is not changed.

use engine::{
    FailedReply, Profile, ReplyForm,
    task::{failed_by_backend, failed_by_panic},
};
use protocol::{Content, Dialect, Error, ErrorKind, Message, Part, Reply, Role, Task, TaskState};

/// The reply in the form that the profile requires.
pub(crate) fn apply(profile: &Profile, dialect: Dialect, reply: Reply) -> Result<Reply, Error> {
    let Reply::SentTask(task) = reply else { return Ok(reply) };
    if is_error(profile.failed_reply, &task) {
        let reason = task.status.message.as_ref().map(Message::text).unwrap_or_default();
        let text = format!("the run of task {} failed: {reason}", task.id);
        return Err(Error::new(ErrorKind::Internal, text).with("taskId", &task.id));
    }
    let as_message = profile.reply == ReplyForm::Message
        && dialect.rules().supports_message_replies
        && task.status.state == TaskState::Completed;
    Ok(if as_message { Reply::SentMessage(result_message(task)) } else { Reply::SentTask(task) })
}

fn is_error(form: FailedReply, task: &Task) -> bool {
    let failed = matches!(task.status.state, TaskState::Failed | TaskState::Rejected);
    match form {
        FailedReply::Task => false,
        FailedReply::Error => failed,
        FailedReply::ErrorIfBroken => failed && (failed_by_panic(task) || failed_by_backend(task)),
    }
}

/// A message with a completed task's results: its artifacts, otherwise its status message. It begins with a text, which
/// is that of the data if there is no other.
fn result_message(task: Task) -> Message {
    let mut parts: Vec<Part> = task.artifacts.into_iter().flat_map(|artifact| artifact.parts).collect();
    if parts.is_empty() {
        parts = task.status.message.map(|message| message.parts).unwrap_or_default();
    }
    // Stable: texts keep their order, and so does the rest.
    parts.sort_by_key(|part| !matches!(part.content, Content::Text(_)));
    if !matches!(parts.first().map(|part| &part.content), Some(Content::Text(_))) {
        let data = parts.iter().filter_map(|part| match &part.content {
            Content::Data(data) => Some(data.as_str()),
            Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
        });
        parts.insert(0, Part::text(data.collect::<Vec<_>>().join("\n")));
    }
    let id = uuid::Uuid::new_v4().to_string();
    Message { context_id: Some(task.context_id), ..Message::new(id, Role::Agent, parts) }
}
