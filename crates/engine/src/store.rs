//! What the engine asks of a database.
//!
//! Writes are finished [`Change`]s, each one transaction's worth for one task, judged and numbered where they
//! are committed. Reads are snapshots inside a [`Scope`]. A change is either whole or not there; what guards
//! it stands in [`Step::effects`], one row per arrow of the state machine, and nowhere else.

mod change;
mod receipt;
mod rows;
mod step;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use protocol::Timestamp;

pub use change::{Accept, Advance, Change, MessageKey, NewContext, Visibility, Work};
pub use receipt::{Committed, Conflict, KeyUsed, NotCommitted, Receipt, Receipts};
pub use rows::{
    Among, ContextLookup, ContextRow, Due, Ended, Expired, Expiry, ListPage, ListQuery, Lookup, Place,
    Snapshot, TaskRow, WorkItem,
};
pub use step::{Counter, Effects, MAX_UNANSWERED, States, Step, Waiting, When};

use crate::{
    error,
    ids::{Ids, TaskNo},
    log::{Corrupt, Entry, Seq},
    memory::Reservation,
    scope::Scope,
};

/// Keeps the engine's facts.
pub trait Store: Send + Sync + 'static {
    /// Hands a change over. It is durable when the receipt says so, not before; dropping the receipt does not
    /// take the change back.
    fn commit(&self, change: Change) -> Receipt;

    /// A task of this scope with its whole log.
    fn find(&self, scope: &Scope, lookup: Lookup) -> Read<Option<Snapshot>>;

    /// The same for a call that has so much memory: a task that does not fit is refused before its log is read.
    fn find_within(&self, scope: &Scope, lookup: Lookup, memory: &Arc<Reservation>)
    -> Read<Option<Snapshot>>;

    /// Entries of a task of this scope after a place in its log, at most `max`.
    fn entries(&self, scope: &Scope, task: TaskNo, after: Seq, max: usize) -> Read<Vec<(Seq, Arc<Entry>)>>;

    /// The last status of a task of this scope among the entries of its log up to this one.
    fn last_status(&self, scope: &Scope, task: TaskNo, up_to: Seq) -> Read<Option<Arc<Entry>>>;

    /// A page of the tasks of this scope that show themselves, newest status first.
    fn list(&self, scope: &Scope, query: ListQuery) -> Read<ListPage>;

    /// Where a follow-up to one of these tasks of this scope was recorded before.
    fn turn_key(&self, scope: &Scope, among: Among, key: MessageKey) -> Read<Option<KeyUsed>>;

    /// Where the first message of a task was recorded before, as of everything handed over until now.
    fn first_use(&self, key: MessageKey) -> Read<Option<KeyUsed>>;

    /// How many tasks of an agent are open, over all its owners.
    fn count_open(&self, agent: &str) -> Read<u64>;

    /// A conversation of this scope.
    fn context(&self, scope: &Scope, lookup: ContextLookup) -> Read<Option<ContextRow>>;

    /// The tasks of a conversation before one of them, oldest first, the newest `max`.
    fn conversation(&self, scope: &Scope, first: TaskNo, before: TaskNo, max: usize) -> Read<Vec<Snapshot>>;

    /// Tasks whose work is due and held by nobody, longest due first; and when the next one is.
    fn due(&self, now: Timestamp, max: usize) -> Read<Due>;

    /// All a runner needs to take up a task.
    fn work(&self, task: TaskNo) -> Read<Option<WorkItem>>;

    /// The agents whose tasks are or were kept here, hosted or not.
    fn agents(&self) -> Read<Vec<String>>;

    /// Tasks of an agent that have had their time.
    fn expired(&self, expiry: Expiry) -> Read<Expired>;

    /// Empties finished tasks, unless they have moved on: nothing of them is left but rows that still know their
    /// messages' keys, and that it is `now` that they were emptied. Says how many there were.
    fn purge(&self, tasks: Vec<Ended>, now: Timestamp) -> Read<usize>;

    /// Drops rows of tasks that were purged before this, at most `max`. Says how many there were.
    fn drop_purged(&self, purged_before: Timestamp, max: usize) -> Read<usize>;

    /// Sets aside a block of task numbers that nobody else will use; gives the first.
    fn reserve(&self, count: i64) -> Read<TaskNo>;

    /// The names of tasks and contexts under this store's key.
    fn ids(&self) -> Ids;

    /// A key for authenticating what callers carry away, such as page tokens.
    fn seal_key(&self) -> [u8; 32];

    /// Resolves when the store can no longer write, with the reason.
    fn failed(&self) -> BoxFuture<'static, String>;

    /// Resolves when the store is found to hold something it should not, with what that is.
    fn damaged(&self) -> BoxFuture<'static, String>;
}

/// What a read gives, later.
pub type Read<T> = BoxFuture<'static, Result<T, StoreError>>;

/// Why a store cannot answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// It has stopped or is overloaded.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// It holds something it should not.
    #[error("the store is damaged: {0}")]
    Broken(String),
    /// What was asked for does not fit into the memory of the call.
    #[error("{0}")]
    TooLarge(protocol::Error),
}

impl From<Corrupt> for StoreError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Broken(corrupt.to_string())
    }
}

impl From<StoreError> for error::Error {
    fn from(failure: StoreError) -> Self {
        match failure {
            StoreError::Unavailable(reason) => Self::Unavailable(reason),
            StoreError::Broken(reason) => Self::Broken(reason),
            StoreError::TooLarge(error) => Self::Later(error),
        }
    }
}

impl From<Corrupt> for error::Error {
    fn from(corrupt: Corrupt) -> Self {
        Self::Broken(corrupt.to_string())
    }
}
