//! A store wrapper that records the submitted changes and can block commits and inject faults.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use a2ad_engine::{
    AgentSwitch, ApiKey, Scope, Store,
    ids::{Ids, Tag, TaskNo},
    log::{Entry, Kind, Seq},
    metrics::{DiskUsage, StoreMetrics},
    store::{
        Change, ContextLookup, ContextRow, DeadLetter, DeliveryResult, Due, DueWebhook, DueWebhooks,
        DueWebhooksQuery, Expired, Expiry, FinishedTask, KeyOwner, KeyUsed, ListPage, ListQuery,
        ListedDelivery, Lookup, MessageKey, NewWebhook, NotCommitted, OperatorPage, OperatorQuery, Overdue,
        PendingDelivery, ReadFuture, Receipt, ReceiptSender, Registered, RetentionMark, Snapshot, StoreError,
        TaskCounts, TaskRow, TaskWork, TenantAgent, View, Webhook, WebhookNo, WorkItem,
    },
};
use futures_util::future::BoxFuture;
use protocol::{ConfigId, TaskState, Timestamp};
use store::Sqlite;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

/// Records changes by the name of their step: `accept`, `report`, `finish`, ….
pub(crate) struct RecordingStore {
    store: Sqlite,
    /// Submitted changes, in order.
    submitted: Mutex<Vec<String>>,
    /// Committed changes, in order.
    committed: Arc<watch::Sender<Vec<String>>>,
    blocked: Mutex<BlockedCommits>,
    /// Reads that load some of a log, in order.
    log_reads: Mutex<Vec<&'static str>>,
    /// Reads of due work find nothing.
    hides_due: AtomicBool,
    /// Faults of the next reads of claimed work.
    faults: Mutex<VecDeque<WorkFault>>,
    /// The step of the next change that is rejected, and how.
    rejected: Mutex<Option<(String, NotCommitted)>>,
    blocked_count: watch::Sender<usize>,
    /// How often the retention time was recorded.
    retention_records: watch::Sender<usize>,
    receipts: TaskTracker,
}

/// A fault in reading claimed work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WorkFault {
    /// The store is temporarily unavailable.
    Unavailable,
    /// The log is empty.
    EmptyLog,
}

#[derive(Default)]
struct BlockedCommits {
    blocking: bool,
    /// Only changes of this step are blocked.
    only: Option<String>,
    queue: Vec<(Change, ReceiptSender)>,
}

impl RecordingStore {
    pub(super) fn new(store: Sqlite) -> Self {
        Self {
            store,
            submitted: Mutex::default(),
            committed: Arc::new(watch::Sender::default()),
            blocked: Mutex::default(),
            log_reads: Mutex::default(),
            hides_due: AtomicBool::default(),
            faults: Mutex::default(),
            rejected: Mutex::default(),
            blocked_count: watch::Sender::default(),
            retention_records: watch::Sender::default(),
            receipts: TaskTracker::new(),
        }
    }

    /// All changes submitted so far, by step.
    pub(crate) fn steps(&self) -> Vec<String> {
        self.submitted.lock().unwrap().clone()
    }

    /// Number of submitted changes of a step.
    pub(crate) fn count(&self, step: &str) -> usize {
        self.submitted.lock().unwrap().iter().filter(|submitted| *submitted == step).count()
    }

    /// Waits until `count` changes of a step are committed.
    pub(crate) async fn until(&self, step: &str, count: usize) {
        let mut committed = self.committed.subscribe();
        let enough = |steps: &Vec<String>| steps.iter().filter(|done| *done == step).count() >= count;
        super::with_timeout(committed.wait_for(enough)).await.unwrap();
    }

    /// The state of each entry of a task's log; `None` for entries without one.
    pub(crate) async fn log(&self, row: &TaskRow) -> Vec<Option<TaskState>> {
        let mut entries = Vec::new();
        while (entries.len() as Seq) < row.last_seq {
            let slice = self.store.entries(&super::scope(), row.no, entries.len() as Seq, usize::MAX).await;
            entries.extend(slice.unwrap());
        }
        let state = |entry: &Entry| match entry.kind() {
            Kind::Status(state) => Some(state),
            Kind::Artifact | Kind::Message => None,
        };
        entries.iter().map(|(_, entry)| state(entry)).collect()
    }

    /// The reads since the last call that have loaded some of a log, by method.
    pub(crate) fn take_log_reads(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.log_reads.lock().unwrap())
    }

    /// Blocks commits from now on.
    pub(crate) fn block_commits(&self) {
        self.blocked.lock().unwrap().blocking = true;
    }

    /// Blocks changes of this step from now on.
    pub(crate) fn block_step(&self, step: &str) {
        let mut blocked = self.blocked.lock().unwrap();
        (blocked.blocking, blocked.only) = (true, Some(step.into()));
    }

    /// From now on, reads of due work find nothing.
    pub(crate) fn hide_due(&self) {
        self.hides_due.store(true, Ordering::SeqCst);
    }

    /// The next reads of claimed work fail like this, one after the other.
    pub(crate) fn inject_faults(&self, looks: impl IntoIterator<Item = WorkFault>) {
        self.faults.lock().unwrap().extend(looks);
    }

    /// The next change of this step is rejected as too large.
    pub(crate) fn reject_as_too_large(&self, step: &str) {
        let reason = NotCommitted::TooLarge("injected by the test".into());
        *self.rejected.lock().unwrap() = Some((step.into(), reason));
    }

    /// The next change of this step is rejected because the store cannot write.
    pub(crate) fn reject_as_unavailable(&self, step: &str) {
        let reason = NotCommitted::Unavailable("injected by the test".into());
        *self.rejected.lock().unwrap() = Some((step.into(), reason));
    }

    /// Waits until `count` changes are blocked.
    pub(crate) async fn until_blocked(&self, count: usize) {
        let mut blocked_count = self.blocked_count.subscribe();
        super::with_timeout(blocked_count.wait_for(|blocked_count| *blocked_count >= count)).await.unwrap();
    }

    /// Waits until the retention time was recorded: the purger has started.
    pub(crate) async fn until_retention_recorded(&self) {
        let mut records = self.retention_records.subscribe();
        super::with_timeout(records.wait_for(|count| *count > 0)).await.unwrap();
    }

    /// Commits the blocked changes and stops blocking.
    pub(crate) fn unblock_commits(&self) {
        let mut blocked = self.blocked.lock().unwrap();
        blocked.blocking = false;
        blocked.only = None;
        for (change, receipts) in blocked.queue.drain(..) {
            self.forward(change, receipts);
        }
        self.blocked_count.send_replace(0);
    }

    fn forward(&self, change: Change, receipts: ReceiptSender) {
        let (step, committed) = (name(&change), Arc::clone(&self.committed));
        let receipt = self.store.commit(change);
        self.receipts.spawn(async move {
            let result = receipt.await;
            let success = result.is_ok();
            receipts.fill(result);
            if success {
                committed.send_modify(|steps| steps.push(step));
            }
        });
    }
}

/// The variant name of a step, in lower case.
fn name(change: &Change) -> String {
    match change {
        Change::Accept(_) => "accept".into(),
        Change::Advance(advance) => {
            let step = format!("{:?}", advance.step).to_lowercase();
            step.split([' ', '(']).next().unwrap_or_default().into()
        }
    }
}

/// Methods that only pass on what they get.
macro_rules! passed_on {
    ($($name:ident($($argument:ident: $of:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $of),*) -> $result {
            self.store.$name($($argument),*)
        })*
    };
}

impl Store for RecordingStore {
    fn commit(&self, change: Change) -> Receipt {
        self.submitted.lock().unwrap().push(name(&change));
        let (receipts, receipt) = Receipt::new();
        if let Some((_, reason)) = self.rejected.lock().unwrap().take_if(|(step, _)| *step == name(&change)) {
            receipts.fill(Err(reason));
            return receipt;
        }
        let mut blocked = self.blocked.lock().unwrap();
        if blocked.blocking && blocked.only.as_ref().is_none_or(|step| *step == name(&change)) {
            blocked.queue.push((change, receipts));
            self.blocked_count.send_replace(blocked.queue.len());
        } else {
            self.forward(change, receipts);
        }
        receipt
    }

    fn read(&self, scope: &Scope, lookup: Lookup, view: View) -> ReadFuture<Option<Snapshot>> {
        self.log_reads.lock().unwrap().push("read");
        self.store.read(scope, lookup, view)
    }

    fn entries(
        &self,
        scope: &Scope,
        task: TaskNo,
        after: Seq,
        max: usize,
    ) -> ReadFuture<Vec<(Seq, Arc<Entry>)>> {
        self.log_reads.lock().unwrap().push("entries");
        self.store.entries(scope, task, after, max)
    }

    fn due(&self, now: Timestamp, max: usize) -> ReadFuture<Due> {
        if self.hides_due.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Ok(Due::default())));
        }
        self.store.due(now, max)
    }

    fn work(&self, task: TaskNo) -> ReadFuture<Option<WorkItem>> {
        self.log_reads.lock().unwrap().push("work");
        let work = self.store.work(task);
        let faults = self.faults.lock().unwrap().pop_front();
        Box::pin(async move {
            let mut work = work.await?;
            match (faults, &mut work) {
                (Some(WorkFault::Unavailable), _) => {
                    return Err(StoreError::Unavailable("injected by the test".into()));
                }
                (Some(WorkFault::EmptyLog), Some(work)) => work.log.clear(),
                _ => {}
            }
            Ok(work)
        })
    }

    fn record_retention(&self, mark: RetentionMark) {
        self.store.record_retention(mark);
        self.retention_records.send_modify(|count| *count += 1);
    }

    passed_on! {
        row(scope: &Scope, lookup: Lookup) -> ReadFuture<Option<TaskRow>>;
        last_input(scope: &Scope, task: TaskNo) -> ReadFuture<Option<(Seq, Arc<Entry>)>>;
        last_status(scope: &Scope, task: TaskNo, up_to: Seq) -> ReadFuture<Option<Arc<Entry>>>;
        list(scope: &Scope, query: ListQuery) -> ReadFuture<ListPage>;
        turn_key(scope: &Scope, owner: KeyOwner, key: MessageKey) -> ReadFuture<Option<KeyUsed>>;
        first_use(key: MessageKey) -> ReadFuture<Option<KeyUsed>>;
        count_open(agent: &TenantAgent) -> ReadFuture<u64>;
        context(scope: &Scope, lookup: ContextLookup) -> ReadFuture<Option<ContextRow>>;
        context_history(scope: &Scope, first: TaskNo, before: TaskNo, max: usize, max_bytes: usize) -> ReadFuture<Vec<Snapshot>>;
        task_work(task: TaskNo, tag: Tag) -> ReadFuture<Option<TaskWork>>;
        overdue(now: Timestamp, max: usize) -> ReadFuture<Overdue>;
        agents() -> ReadFuture<Vec<TenantAgent>>;
        expired(expiry: Expiry) -> ReadFuture<Expired>;
        purge(tasks: Vec<FinishedTask>, now: Timestamp) -> ReadFuture<usize>;
        drop_purged(purged_before: Timestamp, max: usize) -> ReadFuture<usize>;
        retention_mark() -> ReadFuture<Option<RetentionMark>>;
        reserve(count: i64) -> ReadFuture<TaskNo>;
        api_keys() -> ReadFuture<Vec<ApiKey>>;
        insert_api_key(key: ApiKey, max: usize) -> ReadFuture<bool>;
        revoke_api_key(id: String, now: Timestamp) -> ReadFuture<bool>;
        register_webhook(task: TaskNo, webhook: NewWebhook, max: usize) -> ReadFuture<Registered>;
        webhooks(scope: &Scope, task: TaskNo) -> ReadFuture<Vec<Webhook>>;
        delete_webhook(task: TaskNo, id: ConfigId) -> ReadFuture<bool>;
        delivery_signal() -> Arc<Notify>;
        due_webhooks(query: DueWebhooksQuery) -> ReadFuture<DueWebhooks>;
        first_pending(host: String) -> ReadFuture<Option<DueWebhook>>;
        pending_delivery(webhook: WebhookNo) -> ReadFuture<Option<PendingDelivery>>;
        record_delivery(result: DeliveryResult) -> ReadFuture<bool>;
        release_host(host: String, now: Timestamp) -> ReadFuture<bool>;
        retry_delivery(webhook: WebhookNo, now: Timestamp) -> ReadFuture<bool>;
        pending_deliveries(after: WebhookNo, max: usize) -> ReadFuture<Vec<ListedDelivery>>;
        dead_letters(before: i64, max: usize) -> ReadFuture<Vec<DeadLetter>>;
        dead_letter(no: i64) -> ReadFuture<Option<DeadLetter>>;
        delete_dead_letter(no: i64) -> ReadFuture<bool>;
        expire_dead_letters(died_before: Timestamp, max: usize) -> ReadFuture<usize>;
        agent_switches() -> Vec<AgentSwitch>;
        set_agent_switch(switch: AgentSwitch) -> ReadFuture<bool>;
        tasks_of_all(query: OperatorQuery) -> ReadFuture<OperatorPage>;
        owner(task: TaskNo, tag: Tag) -> ReadFuture<Option<Scope>>;
        task_counts() -> ReadFuture<TaskCounts>;
        metrics() -> &StoreMetrics;
        disk_usage() -> ReadFuture<DiskUsage>;
        ids() -> Ids;
        seal_key() -> [u8; 32];
        failed() -> BoxFuture<'static, String>;
        damaged() -> BoxFuture<'static, String>;
    }
}
