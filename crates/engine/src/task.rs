//! The rules of tasks, as pure functions: what may happen, what is recorded, and what it adds up to.
//!
//! [`admit`] judges a message, [`advance`] what an agent says, [`cancel`] a client's wish to end it,
//! [`closed`] keeps what was finished before the task was opened again, and [`fold`] makes the task out of its log. Nothing here reads a clock, a store or a socket.

pub mod admit;
pub mod advance;
pub mod cancel;
pub mod closed;
pub mod fold;

use protocol::{
    ContextId, Event, Json, Message, Task, TaskId, TaskState, TaskStatus, Timestamp, model::StatusUpdate,
};

use crate::{
    ids::Ids,
    store::{ContextRow, TaskRow, Visibility},
};

/// How a task and its conversation are called outside.
#[derive(Clone, Debug)]
pub struct Names {
    /// The task.
    pub task: TaskId,
    /// Its conversation.
    pub context: ContextId,
}

impl Names {
    /// The names of a row.
    pub fn of(ids: &Ids, row: &TaskRow) -> Self {
        let task = row.client_id.clone().unwrap_or_else(|| ids.task(row.no, row.tag));
        Self { task, context: context_name(ids, &row.context) }
    }

    /// A status of this task.
    pub fn status(&self, state: TaskState, message: Option<Message>, at: Timestamp) -> Event {
        Event::Status(StatusUpdate {
            task_id: self.task.clone(),
            context_id: self.context.clone(),
            status: TaskStatus { state, message, timestamp: Some(at) },
            metadata: None,
        })
    }
}

/// What the message of a run says that ended with a panic of its agent, for whoever answers that in another way.
pub(crate) fn after_panic() -> Json {
    Json::parse(r#"{"a2ad":{"cause":"panic"}}"#).expect("this is JSON")
}

/// Whether a task failed because its agent panicked.
pub fn is_after_panic(task: &Task) -> bool {
    let metadata = task.status.message.as_ref().and_then(|message| message.metadata.as_ref());
    metadata == Some(&after_panic())
}

/// How a conversation is called outside.
pub fn context_name(ids: &Ids, context: &ContextRow) -> ContextId {
    context.name.clone().unwrap_or_else(|| ids.context(context.first, context.tag))
}

/// Where a task stands for the run that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The state clients see.
    pub state: TaskState,
    /// Whether clients see it.
    pub visibility: Visibility,
}
