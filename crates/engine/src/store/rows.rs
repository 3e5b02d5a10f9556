//! What the engine reads: rows, logs and pages as of one moment.

use std::sync::Arc;

use bytes::Bytes;
use protocol::{ContextId, Dialect, Task, TaskId, TaskState, Timestamp};

use super::Visibility;
use crate::{
    ids::{Tag, TaskNo},
    log::{Entry, Seq},
    scope::Scope,
};

/// A task by its public name: tried as ours, then as a name a client chose.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The number and tag, when the name is one of ours.
    pub ours: Option<(TaskNo, Tag)>,
    /// The name as given.
    pub name: TaskId,
}

/// A conversation by its public name: tried as ours, then as a name a client chose.
#[derive(Clone, Debug)]
pub struct ContextLookup {
    /// The first task and the context's tag, when the name is one of ours.
    pub ours: Option<(TaskNo, Tag)>,
    /// The name as given.
    pub name: ContextId,
}

/// The tasks among which a message is looked for.
#[derive(Clone, Debug)]
pub enum Among {
    /// This one.
    Task(TaskNo),
    /// Those of a conversation.
    Context(ContextLookup),
}

/// A conversation as rows name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextRow {
    /// Its first task.
    pub first: TaskNo,
    /// Its own tag.
    pub tag: Tag,
    /// The name a client chose for it.
    pub name: Option<ContextId>,
}

/// A task's row.
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// Its number.
    pub no: TaskNo,
    /// The random part of its name.
    pub tag: Tag,
    /// The name a client chose for it.
    pub client_id: Option<TaskId>,
    /// The skill that was asked for.
    pub skill: Option<String>,
    /// The dialect that made it.
    pub origin: Dialect,
    /// Its conversation.
    pub context: ContextRow,
    /// Its state.
    pub state: TaskState,
    /// Since when.
    pub status_at: Timestamp,
    /// How often it was opened: 1, and one more for each time it had ended and went on.
    pub turn: i64,
    /// The number of its last entry.
    pub last_seq: Seq,
    /// The fence in force.
    pub fence: i64,
    /// Attempts made so far.
    pub attempt: i64,
    /// Processes that died while they ran it.
    pub deaths: i64,
    /// Messages said after its current turn began; the next turn answers them.
    pub unanswered: i64,
    /// Whether clients see it.
    pub visibility: Visibility,
    /// Bytes of its log.
    pub size: u64,
    /// Up to which entry its doc holds; 0 where there is none.
    pub doc: Seq,
}

/// A task as of one moment: its row, and its log or the end of it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The row.
    pub row: TaskRow,
    /// The task as folded some time ago, where that has been kept.
    pub doc: Option<Task>,
    /// The log behind the doc, up to `row.last_seq`; all of it where there is none.
    pub log: Vec<Arc<Entry>>,
}

/// A task to be run.
#[derive(Clone, Debug)]
pub struct WorkItem {
    /// The task.
    pub snapshot: Snapshot,
    /// Whose it is.
    pub scope: Scope,
    /// What its agent saved last.
    pub saved: Option<Bytes>,
}

/// What is due.
#[derive(Clone, Debug, Default)]
pub struct Due {
    /// Tasks to claim.
    pub tasks: Vec<TaskNo>,
    /// The longest due of the tasks under which two processes or more have died.
    pub suspect: Option<TaskNo>,
    /// When the first of those not yet due is.
    pub next: Option<Timestamp>,
}

/// Which tasks to list.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// Only this conversation.
    pub context: Option<ContextLookup>,
    /// Only this state.
    pub state: Option<TaskState>,
    /// Only statuses of this age or younger.
    pub since: Option<Timestamp>,
    /// Only behind this place.
    pub after: Option<Place>,
    /// How many.
    pub size: usize,
}

/// A place in a list: lists run from newest status to oldest, and from newest task to oldest within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The status time there.
    pub status_at: Timestamp,
    /// The task there.
    pub no: TaskNo,
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// The tasks.
    pub tasks: Vec<Snapshot>,
    /// How many the filter matches in all.
    pub total: u64,
    /// Whether more follow.
    pub more: bool,
}

/// Which tasks of an agent have had their time.
#[derive(Clone, Debug)]
pub struct Expiry {
    /// The agent, over all its owners.
    pub agent: String,
    /// Finished tasks whose end is older.
    pub ended_before: Timestamp,
    /// How many finished tasks are kept; the oldest go first.
    pub max_tasks: Option<u64>,
    /// Tasks that have waited for their client since before this.
    pub waiting_since: Timestamp,
    /// How many to name at most.
    pub max: usize,
}

/// A task that is over, as it was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The task.
    pub no: TaskNo,
    /// Its last entry; one that has more by now was opened again.
    pub last_seq: Seq,
}

/// Tasks that have had their time.
#[derive(Clone, Debug, Default)]
pub struct Expired {
    /// Finished tasks to be emptied.
    pub finished: Vec<Ended>,
    /// Tasks whose client never answered.
    pub waiting: Vec<TaskRow>,
}
