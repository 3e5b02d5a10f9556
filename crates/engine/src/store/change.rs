//! What the engine writes: finished changes, one transaction's worth for one task each.

use bytes::Bytes;
use protocol::{ContextId, Dialect, TaskId, TaskState, Timestamp};

use super::{ContextRow, Step};
use crate::{
    ids::{Tag, TaskNo},
    log::Log,
    scope::Scope,
};

/// One thing that happens to one task.
#[derive(Debug)]
pub enum Change {
    /// A message becomes a task.
    Accept(Box<Accept>),
    /// A task moves on.
    Advance(Box<Advance>),
}

/// A new task.
#[derive(Debug)]
pub struct Accept {
    /// Its number, set aside before.
    pub no: TaskNo,
    /// The random part of its name.
    pub tag: Tag,
    /// Whose it is.
    pub scope: Scope,
    /// The name its client chose for it: no other task of the scope has it.
    pub client_id: Option<TaskId>,
    /// The skill that was asked for.
    pub skill: Option<String>,
    /// The dialect that makes it.
    pub origin: Dialect,
    /// The conversation it joins or begins.
    pub context: NewContext,
    /// Its first entries.
    pub log: Log,
    /// Its state after them.
    pub state: TaskState,
    /// Since when.
    pub status_at: Timestamp,
    /// Whether clients see it.
    pub visibility: Visibility,
    /// Who runs it, or when. Held means the first claim: fence 1, attempt 1.
    pub work: Work,
    /// What its agent saved.
    pub saved: Option<Bytes>,
    /// What tells a repetition of its message.
    pub key: Option<MessageKey>,
}

/// What tells a repetition of a message: whose it is and under which name, and what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageKey {
    /// A digest of the owner and the name.
    pub key: [u8; 16],
    /// A digest of what was said.
    pub hash: [u8; 16],
}

/// The conversation of a new task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewContext {
    /// Its own, named after it.
    Own,
    /// The one of this client-chosen name in its scope; begun if there is none.
    Named(ContextId),
    /// One that exists.
    Joined(ContextRow),
}

/// A task moves on.
#[derive(Debug)]
pub struct Advance {
    /// The task.
    pub no: TaskNo,
    /// Which arrow of the state machine this is.
    pub step: Step,
    /// What is recorded.
    pub log: Log,
    /// The state afterwards, where it is said anew.
    pub status: Option<(TaskState, Timestamp)>,
    /// Whether clients see it, where that is decided now.
    pub visibility: Option<Visibility>,
    /// What its agent saved.
    pub saved: Option<Bytes>,
    /// The skill that was asked for now; a task that has one keeps it.
    pub skill: Option<String>,
    /// What tells a repetition of the client's message, where this records one.
    pub key: Option<MessageKey>,
}

/// Who runs a task, or when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nobody: it waits for its client or is over.
    Idle,
    /// This process.
    Held,
    /// Whoever has room, from this time on.
    Due(Timestamp),
}

/// Whether clients see a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Its agent has not said anything yet: it may still turn out to be a bare message.
    Undecided,
    /// It is a task.
    Visible,
    /// It was answered by a bare message.
    Hidden,
    /// Its time is over: only the row is left, so that repetitions of its messages are still known.
    Purged,
}

impl Visibility {
    /// Its number in a store.
    pub fn number(self) -> i64 {
        match self {
            Self::Undecided => 0,
            Self::Visible => 1,
            Self::Hidden => 2,
            Self::Purged => 3,
        }
    }

    /// The visibility of a number.
    pub fn from_number(number: i64) -> Option<Self> {
        [Self::Undecided, Self::Visible, Self::Hidden, Self::Purged]
            .into_iter()
            .find(|each| each.number() == number)
    }
}
