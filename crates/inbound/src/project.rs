//! What a profile makes of an answer: the task is what it is, the house shows it in its own way.

use engine::task::is_after_panic;
use protocol::{Dialect, Error, ErrorKind, Message, Part, Reply, Role, Task, TaskState};

use crate::profile::{FailedReply, Profile, ReplyForm};

/// The answer to a send as the house gives it.
pub(crate) fn reply(profile: &Profile, dialect: Dialect, reply: Reply) -> Result<Reply, Error> {
    let Reply::SentTask(task) = reply else { return Ok(reply) };
    if is_error(profile.failed_reply, &task) {
        let said = task.status.message.as_ref().map(Message::text).unwrap_or_default();
        let text = format!("the run of task {} failed: {said}", task.id);
        return Err(Error::new(ErrorKind::Internal, text).with("taskId", &task.id));
    }
    let as_message = profile.reply == ReplyForm::Message
        && dialect.has_bare_messages()
        && task.status.state == TaskState::Completed;
    Ok(if as_message { Reply::SentMessage(message(task)) } else { Reply::SentTask(task) })
}

fn is_error(form: FailedReply, task: &Task) -> bool {
    let failed = matches!(task.status.state, TaskState::Failed | TaskState::Rejected);
    match form {
        FailedReply::Task => false,
        FailedReply::Error => failed,
        FailedReply::ErrorAfterPanic => failed && is_after_panic(task),
    }
}

/// What a completed task produced: its artifacts, or what the agent said in the end.
fn message(task: Task) -> Message {
    let mut parts: Vec<Part> = task.artifacts.into_iter().flat_map(|artifact| artifact.parts).collect();
    if parts.is_empty() {
        parts = task.status.message.map(|said| said.parts).unwrap_or_default();
    }
    if parts.is_empty() {
        parts.push(Part::text(""));
    }
    let id = uuid::Uuid::new_v4().to_string();
    Message { context_id: Some(task.context_id), ..Message::new(id, Role::Agent, parts) }
}
