//! Decides whether a message is accepted and what is recorded for it.

use std::sync::Arc;

use protocol::{
    ContextId, Dialect, ErrorKind, Event, Json, Message, TaskState, Timestamp, model::StatusUpdate,
};

use super::PublicIds;
use crate::{
    agent::message_size,
    error::{Error, Result},
};

/// The effect of a message to an existing task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUp {
    /// The task waits for its client: starts the next turn.
    Continue,
    /// The task is working: queued for the next turn.
    Enqueue,
    /// The task is terminal: reopens it.
    Reopen,
}

/// A message and the status update that it causes.
pub type Opening = (Event, Arc<Message>);

/// The opening of a new task: status `submitted`, with the metadata that the request has for the task.
pub fn start_opening(
    names: &PublicIds,
    message: Message,
    metadata: Option<&Json>,
    now: Timestamp,
) -> Opening {
    opening(names, TaskState::Submitted, message, metadata, now)
}

/// The opening of a message to an existing task: status `working`.
pub fn follow_up_opening(
    names: &PublicIds,
    message: Message,
    metadata: Option<&Json>,
    now: Timestamp,
) -> Opening {
    opening(names, TaskState::Working, message, metadata, now)
}

fn opening(
    names: &PublicIds,
    state: TaskState,
    message: Message,
    metadata: Option<&Json>,
    now: Timestamp,
) -> Opening {
    let event = match names.status(state, None, now) {
        Event::Status(update) => Event::Status(StatusUpdate { metadata: metadata.cloned(), ..update }),
        event => event,
    };
    (event, Arc::new(stamp(names, message)))
}

/// Decides the effect of a message to an existing task (A2A 3.4.3). Canceled and rejected tasks are never
/// reopened.
pub fn follow_up(
    names: &PublicIds,
    state: TaskState,
    context: Option<&ContextId>,
    dialect: Dialect,
) -> Result<FollowUp> {
    if context.is_some_and(|given| *given != names.context) {
        return Err(Error::invalid("message.contextId", "expected the context of the task, or none"));
    }
    if dialect.rules().reopens_finished_tasks && matches!(state, TaskState::Completed | TaskState::Failed) {
        return Ok(FollowUp::Reopen);
    }
    if state.is_terminal() {
        let state = protocol::dialect::v1::task::state_name(state);
        let message =
            format!("task {} is {state} and takes no more messages; send one without taskId", names.task);
        return Err(Error::refused(ErrorKind::UnsupportedOperation, message));
    }
    Ok(if state.is_interrupted() { FollowUp::Continue } else { FollowUp::Enqueue })
}

/// Checks the task's size with this message against the limit, which covers all its turns.
pub fn fits(size: u64, message: &Message, max: u64) -> Result<()> {
    let more = message_size(message);
    if size + more <= max {
        return Ok(());
    }
    let problem = match max.saturating_sub(size) {
        _ if size == 0 => format!("expected at most {max} bytes, all that a task may hold here, not {more}"),
        0 => format!("expected no more messages to this task: it holds {size} bytes and may hold {max}"),
        left => {
            format!("expected at most {left} bytes, not {more}: the task holds {size} and may hold {max}")
        }
    };
    Err(Error::invalid("message.parts", problem))
}

/// Checks the requested skill: it must be the task's skill, if the task has one.
pub fn same_skill(field: &str, kept: Option<&str>, asked: Option<&str>) -> Result<()> {
    match (kept, asked) {
        (Some(kept), Some(asked)) if kept != asked => {
            Err(Error::invalid(field, format!("expected the skill of the task, {kept}, or none")))
        }
        _ => Ok(()),
    }
}

/// Sets the task and context ids of a message.
fn stamp(names: &PublicIds, message: Message) -> Message {
    Message { task_id: Some(names.task.clone()), context_id: Some(names.context.clone()), ..message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_tasks_accept_messages_only_in_draft() {
        let names = PublicIds { task: "t".into(), context: "c".into() };
        for state in TaskState::ALL {
            let verdict = follow_up(&names, state, None, Dialect::V1);
            assert_eq!(verdict.is_err(), state.is_terminal(), "{state:?}");
            if state.is_interrupted() {
                assert_eq!(verdict.unwrap(), FollowUp::Continue);
            }
            let ended = matches!(state, TaskState::Completed | TaskState::Failed);
            let reopened = follow_up(&names, state, None, Dialect::Draft).ok() == Some(FollowUp::Reopen);
            assert_eq!(reopened, ended, "{state:?}");
        }
        assert!(follow_up(&names, TaskState::InputRequired, Some(&"c".into()), Dialect::V1).is_ok());
        assert!(follow_up(&names, TaskState::InputRequired, Some(&"d".into()), Dialect::V1).is_err());
    }
}
