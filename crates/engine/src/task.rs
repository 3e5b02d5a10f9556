//! The rules of tasks as pure functions: which changes are allowed, what they record, and the resulting task.
//!
//! [`admit`] decides about messages, [`advance`] turns an agent's updates into events, [`cancel`] decides
//! about cancels, [`artifact_log`] and [`turn_start`] collect from a log what a run needs, [`earlier_artifacts`]
//! protects the artifacts of earlier turns, [`turn`] decides what each change of a run records, and [`fold`]
//! builds the task from its log. Nothing here reads a clock, a store or a socket.

pub mod admit;
pub mod advance;
pub mod artifact_log;
pub mod cancel;
pub mod earlier_artifacts;
pub mod fold;
pub mod turn;
pub mod turn_start;

use protocol::{
    ContextId, Event, Json, Message, Task, TaskId, TaskState, TaskStatus, Timestamp, model::StatusUpdate,
};

use crate::{
    ids::Ids,
    store::{ContextRow, TaskRow, Visibility},
};

/// The public ids of a task and its conversation.
#[derive(Clone, Debug)]
pub struct PublicIds {
    /// Task id.
    pub task: TaskId,
    /// Context id.
    pub context: ContextId,
}

impl PublicIds {
    /// The public ids of a row; client-chosen ids take precedence.
    pub fn of(ids: &Ids, row: &TaskRow) -> Self {
        let task = row.client_id.clone().unwrap_or_else(|| ids.task(row.no, row.tag));
        Self { task, context: context_name(ids, &row.context) }
    }

    /// A status update event of this task.
    pub fn status(&self, state: TaskState, message: Option<Message>, at: Timestamp) -> Event {
        Event::Status(StatusUpdate {
            task_id: self.task.clone(),
            context_id: self.context.clone(),
            status: TaskStatus { state, message, timestamp: Some(at) },
            metadata: None,
        })
    }
}

/// Metadata of the status message after an agent panic; compatibility profiles reply differently then.
pub(crate) fn panic_metadata() -> Json {
    Json::parse(r#"{"a2ad":{"cause":"panic"}}"#).expect("this is JSON")
}

/// Whether a task failed because its agent panicked.
pub fn failed_by_panic(task: &Task) -> bool {
    let metadata = task.status.message.as_ref().and_then(|message| message.metadata.as_ref());
    metadata == Some(&panic_metadata())
}

/// The public id of a conversation.
pub fn context_name(ids: &Ids, context: &ContextRow) -> ContextId {
    context.name.clone().unwrap_or_else(|| ids.context(context.first, context.tag))
}

/// State and visibility of a task, as tracked by its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentState {
    /// Current state.
    pub state: TaskState,
    /// Whether clients can see the task.
    pub visibility: Visibility,
}
