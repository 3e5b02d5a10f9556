//! May this message be accepted, and what does accepting it record?

use std::sync::Arc;

use protocol::{
    ContextId, Dialect, ErrorKind, Event, Json, Message, TaskState, Timestamp, model::StatusUpdate,
};

use super::Names;
use crate::{
    agent::message_size,
    error::{Error, Result},
    log::Line,
};

/// What a message to a task that exists does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUp {
    /// The task waited for it: the next run begins.
    Answer,
    /// The task is being worked on: the message waits for the run's end.
    More,
    /// The task is over and is opened again.
    Reopen,
}

/// Records a message that becomes a task: submitted, with the message riding on it.
pub fn start(names: &Names, message: Message, now: Timestamp) -> Line {
    (names.status(TaskState::Submitted, None, now), Some(Arc::new(stamp(names, message))))
}

/// Records a message to a task that exists: working, with the message riding on it.
pub fn go_on(names: &Names, message: Message, now: Timestamp) -> Line {
    (names.status(TaskState::Working, None, now), Some(Arc::new(stamp(names, message))))
}

/// Adds what the client says about the task to what its message is recorded with.
pub fn about(about: Option<&Json>, opening: Line) -> Line {
    match opening {
        (Event::Status(update), message) if about.is_some() => {
            (Event::Status(StatusUpdate { metadata: about.cloned(), ..update }), message)
        }
        opening => opening,
    }
}

/// Judges a message to a task that exists (A2A 3.4.3). What was canceled or rejected is never opened again.
pub fn follow_up(
    names: &Names,
    state: TaskState,
    context: Option<&ContextId>,
    dialect: Dialect,
) -> Result<FollowUp> {
    if context.is_some_and(|given| *given != names.context) {
        return Err(Error::invalid("message.contextId", "expected the context of the task, or none"));
    }
    if dialect.reopens() && matches!(state, TaskState::Completed | TaskState::Failed) {
        return Ok(FollowUp::Reopen);
    }
    if state.is_terminal() {
        let state = protocol::dialect::v1::task::state_name(state);
        let message =
            format!("task {} is {state} and takes no more messages; send one without taskId", names.task);
        return Err(Error::refused(ErrorKind::UnsupportedOperation, message));
    }
    Ok(if state.is_interrupted() { FollowUp::Answer } else { FollowUp::More })
}

/// Judges a message by what its task would hold with it, which is bounded over all its turns.
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

/// Judges the skill that a message to a task asks for: its own, or any of the agent's while it has none.
pub fn same_skill(field: &str, kept: Option<&str>, asked: Option<&str>) -> Result<()> {
    match (kept, asked) {
        (Some(kept), Some(asked)) if kept != asked => {
            Err(Error::invalid(field, format!("expected the skill of the task, {kept}, or none")))
        }
        _ => Ok(()),
    }
}

/// A message in a task's history says which task and conversation it belongs to.
fn stamp(names: &Names, message: Message) -> Message {
    Message { task_id: Some(names.task.clone()), context_id: Some(names.context.clone()), ..message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_tasks_take_messages_but_in_the_draft() {
        let names = Names { task: "t".into(), context: "c".into() };
        for state in TaskState::ALL {
            let verdict = follow_up(&names, state, None, Dialect::V1);
            assert_eq!(verdict.is_err(), state.is_terminal(), "{state:?}");
            if state.is_interrupted() {
                assert_eq!(verdict.unwrap(), FollowUp::Answer);
            }
            let ended = matches!(state, TaskState::Completed | TaskState::Failed);
            let reopened = follow_up(&names, state, None, Dialect::Draft).ok() == Some(FollowUp::Reopen);
            assert_eq!(reopened, ended, "{state:?}");
        }
        assert!(follow_up(&names, TaskState::InputRequired, Some(&"c".into()), Dialect::V1).is_ok());
        assert!(follow_up(&names, TaskState::InputRequired, Some(&"d".into()), Dialect::V1).is_err());
    }
}
