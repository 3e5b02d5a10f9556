//! May this task be ended by its client, and what does that record?

use protocol::{ErrorKind, Event, TaskState, Timestamp};

use super::Names;
use crate::error::{Error, Result};

/// Ends an open task; a task that is over, cancelled ones included, stays as it is (A2A 3.1.5).
pub fn cancel(names: &Names, state: TaskState, now: Timestamp) -> Result<Event> {
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
