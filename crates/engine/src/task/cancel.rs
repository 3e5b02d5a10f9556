//! Decides whether a task can be canceled and what is recorded for it.

use protocol::{ErrorKind, Event, TaskState, Timestamp};

use super::PublicIds;
use crate::error::{Error, Result};

/// The cancel event of an open task; an error for a terminal one, canceled included (A2A 3.1.5).
pub fn cancel(names: &PublicIds, state: TaskState, now: Timestamp) -> Result<Event> {
    if state.is_terminal() {
        let state = protocol::dialect::v1::task::state_name(state);
        let error = protocol::Error::new(
            ErrorKind::TaskNotCancelable,
            format!("task {} is {state} and can no longer be canceled", names.task),
        );
        return Err(Error::Refused(error.with("taskId", &names.task).with("state", state)));
    }
    Ok(names.status(TaskState::Canceled, None, now))
}
