//! The engine's storage interface.
//!
//! Writes are complete [`Change`]s, each one transaction for one task; the store checks their guards and
//! assigns sequence numbers at commit. Reads are snapshots within a [`Scope`]. A change is applied completely
//! or not at all. Its guards are defined only in [`Step::effects`], one row per transition of the state
//! machine.

mod change;
mod log_reader;
mod operators;
mod push;
mod receipt;
mod rows;
mod step;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use protocol::{ConfigId, Timestamp};
use tokio::sync::Notify;

pub use change::{
    Accept, Advance, Change, JournalChange, JournalStep, MessageKey, NewContext, SavedState, SkillSource,
    StepOwner, Visibility, WorkState,
};
pub use log_reader::{LogReader, LogSlice};
pub use operators::{AgentTaskCounts, MAX_EXAMINED, OperatorPage, OperatorQuery, OwnedTask, TaskCounts};
pub use push::{
    DeadLetter, DeliveryOutcome, DeliveryResult, DueWebhook, DueWebhooks, DueWebhooksQuery, ListedDelivery,
    NewDeadLetter, NewWebhook, NotificationForm, PendingDelivery, Registered, Webhook, WebhookNo,
    WebhookOwner,
};
pub use receipt::{Committed, Conflict, KeyUsed, NotCommitted, Receipt, ReceiptSender};
pub(crate) use rows::is_due;
pub use rows::{
    ContextLookup, ContextRow, Due, DueTask, Expired, Expiry, FinishedTask, KeyOwner, ListPage, ListPosition,
    ListQuery, Lookup, MAX_DUE_AHEAD, Overdue, RetentionMark, Snapshot, TaskRow, TaskWork, TenantAgent, View,
    WaitingSince, WorkItem,
};
pub use step::{Counter, Effects, MAX_UNANSWERED, StartState, States, Step, TurnPrecondition};

pub use crate::access::principal_caps::{CapReached, Demand, PrincipalCaps, Used};
use crate::{
    access::{agent_switches::AgentSwitch, api_keys::ApiKey, scope::Scope},
    error,
    ids::{Ids, Tag, TaskNo},
    log::{Corrupt, Entry, Seq},
    metrics::{DiskUsage, StoreMetrics},
};

/// Size limit of one read of a log, in bytes of entries. A single entry may be larger.
pub const MAX_SLICE_BYTES: usize = 1 << 20;

/// A durable store of tasks and API keys, implemented for each database.
pub trait Store: Send + Sync + 'static {
    /// Queues a change. It is durable when the receipt resolves to success, not before; dropping the receipt
    /// does not revoke the change.
    fn commit(&self, change: Change) -> Receipt;

    /// Whether messages are refused because little disk space is left.
    fn is_low_on_space(&self) -> bool {
        false
    }

    /// The row of a task of this scope, without its log.
    fn row(&self, scope: &Scope, lookup: Lookup) -> ReadFuture<Option<TaskRow>>;

    /// A task of this scope with as much of its log as the view shows. The rest is skipped, not loaded.
    fn read(&self, scope: &Scope, lookup: Lookup, view: View) -> ReadFuture<Option<Snapshot>>;

    /// A task of this scope with its folded document and the whole log after it.
    fn find(&self, scope: &Scope, lookup: Lookup) -> ReadFuture<Option<Snapshot>> {
        self.read(scope, lookup, View::default())
    }

    /// Entries of a task of this scope after a sequence number: at most `max` of them and at most
    /// [`MAX_SLICE_BYTES`], but at least one if there is one. [`LogReader`] reads a log slice by slice.
    fn entries(
        &self,
        scope: &Scope,
        task: TaskNo,
        after: Seq,
        max: usize,
    ) -> ReadFuture<Vec<(Seq, Arc<Entry>)>>;

    /// The last status update of a task of this scope up to and including a sequence number.
    fn last_status(&self, scope: &Scope, task: TaskNo, up_to: Seq) -> ReadFuture<Option<Arc<Entry>>>;

    /// The newest entry of a task of this scope that has a user message or asks the client for something.
    fn last_input(&self, scope: &Scope, task: TaskNo) -> ReadFuture<Option<(Seq, Arc<Entry>)>>;

    /// A page of the visible tasks of this scope, newest status first.
    fn list(&self, scope: &Scope, query: ListQuery) -> ReadFuture<ListPage>;

    /// Where a follow-up message with this key was recorded, among these tasks of this scope.
    fn turn_key(&self, scope: &Scope, owner: KeyOwner, key: MessageKey) -> ReadFuture<Option<KeyUsed>>;

    /// Where the first message of a task with this key was recorded, including all changes queued before this
    /// call.
    fn first_use(&self, key: MessageKey) -> ReadFuture<Option<KeyUsed>>;

    /// Number of open tasks of an agent, over all its scopes.
    fn count_open(&self, agent: &TenantAgent) -> ReadFuture<u64>;

    /// Looks up a conversation of this scope.
    fn context(&self, scope: &Scope, lookup: ContextLookup) -> ReadFuture<Option<ContextRow>>;

    /// The newest `max` tasks of a conversation before one of them, oldest first, with their history only. At
    /// most `max_bytes` of messages are read, the newest ones: the oldest task that is returned may have only
    /// a part of its history.
    fn context_history(
        &self,
        scope: &Scope,
        first: TaskNo,
        before: TaskNo,
        max: usize,
        max_bytes: usize,
    ) -> ReadFuture<Vec<Snapshot>>;

    /// Tasks whose work is due and not held by a process, longest due first; and when the next one becomes
    /// due. Work that is due later than [`MAX_DUE_AHEAD`] from now was scheduled by a wrong clock: it is due
    /// now, before all other work.
    fn due(&self, now: Timestamp, max: usize) -> ReadFuture<Due>;

    /// Tasks that no process holds and whose deadline has passed, earliest first; and the next deadline.
    fn overdue(&self, now: Timestamp, max: usize) -> ReadFuture<Overdue>;

    /// State and queued work of the visible task with this number and tag. Not restricted to a scope: for requests that
    /// a signature over the task's id permits.
    fn task_work(&self, task: TaskNo, tag: Tag) -> ReadFuture<Option<TaskWork>>;

    /// A task with what a runner needs to run it, and the first slice of its log.
    fn work(&self, task: TaskNo) -> ReadFuture<Option<WorkItem>>;

    /// All agents that have tasks in this store, registered or not.
    fn agents(&self) -> ReadFuture<Vec<TenantAgent>>;

    /// Tasks of an agent whose retention has expired.
    fn expired(&self, expiry: Expiry) -> ReadFuture<Expired>;

    /// Purges finished tasks, unless they were reopened meanwhile: only a row with the keys of their messages
    /// and the purge time `now` remains. Large tasks are deleted in several commits between live work; they
    /// are invisible from the first one on. Returns how many were purged.
    fn purge(&self, tasks: Vec<FinishedTask>, now: Timestamp) -> ReadFuture<usize>;

    /// Deletes the rows of tasks purged before this time, at most `max`, and what an interrupted purge left of
    /// any task. Returns how many rows of tasks were deleted.
    fn drop_purged(&self, purged_before: Timestamp, max: usize) -> ReadFuture<usize>;

    /// The retention time that was last recorded.
    fn retention_mark(&self) -> ReadFuture<Option<RetentionMark>>;

    /// Queues the retention time to be recorded. It may be lost in a crash: then tasks expire later.
    fn record_retention(&self, mark: RetentionMark);

    /// Reserves a block of task numbers for this process; returns the first.
    fn reserve(&self, count: i64) -> ReadFuture<TaskNo>;

    /// All API keys, the revoked ones too, newest first.
    fn api_keys(&self) -> ReadFuture<Vec<ApiKey>>;

    /// Queues an API key to be added, unless its agent has `max` valid ones. It is durable when the future resolves to
    /// `true`; dropping the future does not revoke the change.
    fn insert_api_key(&self, key: ApiKey, max: usize) -> ReadFuture<bool>;

    /// Queues an API key to be marked as revoked. It is durable when the future resolves to `true`; `false` if there is
    /// no valid key with this id. Dropping the future does not revoke the change.
    fn revoke_api_key(&self, id: String, now: Timestamp) -> ReadFuture<bool>;

    /// The decisions of operators about agents, as they were when the store was opened.
    fn agent_switches(&self) -> Vec<AgentSwitch>;

    /// Queues a decision about an agent, which replaces an earlier one. It is durable when the future resolves; dropping
    /// the future does not revoke it.
    fn set_agent_switch(&self, switch: AgentSwitch) -> ReadFuture<bool>;

    /// Queues a webhook for a visible task, unless the task has `max` others. It is durable when the future resolves.
    /// A webhook with the same id is replaced, and goes on where it was. A new one gets the events after the task's last
    /// entry, and the last one too if the task is settled: it may have ended a moment before.
    fn register_webhook(&self, task: TaskNo, webhook: NewWebhook, max: usize) -> ReadFuture<Registered>;

    /// The webhooks of a task of this scope, oldest first.
    fn webhooks(&self, scope: &Scope, task: TaskNo) -> ReadFuture<Vec<Webhook>>;

    /// Queues a webhook to be deleted. `false` if there is none with this id.
    fn delete_webhook(&self, task: TaskNo, id: ConfigId) -> ReadFuture<bool>;

    /// Notified after each commit that made a webhook due.
    fn delivery_signal(&self) -> Arc<Notify>;

    /// The webhooks that are due, longest due first.
    fn due_webhooks(&self, query: DueWebhooksQuery) -> ReadFuture<DueWebhooks>;

    /// The webhook of a host that is due first, also if it is due later.
    fn first_pending(&self, host: String) -> ReadFuture<Option<DueWebhook>>;

    /// A webhook with its task; `None` if either was deleted.
    fn pending_delivery(&self, webhook: WebhookNo) -> ReadFuture<Option<PendingDelivery>>;

    /// Queues the result of a delivery. It is durable when the future resolves; `false` if the webhook was deleted.
    fn record_delivery(&self, result: DeliveryResult) -> ReadFuture<bool>;

    /// Makes all pending deliveries of a host due now.
    fn release_host(&self, host: String, now: Timestamp) -> ReadFuture<bool>;

    /// Makes a pending delivery due now; `false` if there is none. For operators.
    fn retry_delivery(&self, webhook: WebhookNo, now: Timestamp) -> ReadFuture<bool>;

    /// Pending deliveries of all owners after this webhook, by number, at most `max`. For operators.
    fn pending_deliveries(&self, after: WebhookNo, max: usize) -> ReadFuture<Vec<ListedDelivery>>;

    /// Dead letters without their bodies, newest first, before this number, at most `max`. For operators.
    fn dead_letters(&self, before: i64, max: usize) -> ReadFuture<Vec<DeadLetter>>;

    /// A dead letter with its body.
    fn dead_letter(&self, no: i64) -> ReadFuture<Option<DeadLetter>>;

    /// Deletes a dead letter; `false` if there is none.
    fn delete_dead_letter(&self, no: i64) -> ReadFuture<bool>;

    /// Deletes dead letters that are older, at most `max`. Returns how many there were.
    fn expire_dead_letters(&self, died_before: Timestamp, max: usize) -> ReadFuture<usize>;

    /// A page of the visible tasks of all owners, the newest task first. For operators.
    fn tasks_of_all(&self, query: OperatorQuery) -> ReadFuture<OperatorPage>;

    /// The owner of the visible task with this number and tag. For operators.
    fn owner(&self, task: TaskNo, tag: Tag) -> ReadFuture<Option<Scope>>;

    /// How many visible tasks there are, by agent and state, and how much work is queued and running. For operators.
    fn task_counts(&self) -> ReadFuture<TaskCounts>;

    /// What the store has counted since it was opened.
    fn metrics(&self) -> &StoreMetrics;

    /// How much space the store uses, and how much is left for it.
    fn disk_usage(&self) -> ReadFuture<DiskUsage>;

    /// The id codec with this store's key.
    fn ids(&self) -> Ids;

    /// The key that authenticates data held by clients, such as page tokens.
    fn seal_key(&self) -> [u8; 32];

    /// Resolves when the store can no longer write, with the reason.
    fn failed(&self) -> BoxFuture<'static, String>;

    /// Resolves when an integrity check finds the store damaged, with the findings.
    fn damaged(&self) -> BoxFuture<'static, String>;
}

/// The future of a read.
pub type ReadFuture<T> = BoxFuture<'static, Result<T, StoreError>>;

/// Why a read failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store has stopped.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// Too many reads are waiting already; try again in a moment.
    #[error("too many reads of the store are waiting")]
    Overloaded,
    /// The stored data is damaged.
    #[error("the store is damaged: {0}")]
    Broken(String),
    /// The task was purged while it was being read.
    #[error("the task was purged while it was being read")]
    Purged,
    /// The result does not fit into the call's memory reservation.
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
            StoreError::Overloaded => {
                Self::later("the server has too many requests to read tasks; try again in a second")
            }
            StoreError::Broken(reason) => Self::Broken(reason),
            StoreError::Purged => crate::stream::purged_error(),
            StoreError::TooLarge(error) => Self::RetryLater(error),
        }
    }
}

impl From<Corrupt> for error::Error {
    fn from(corrupt: Corrupt) -> Self {
        Self::Broken(corrupt.to_string())
    }
}
