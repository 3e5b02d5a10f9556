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

    fn row(&self, scope: &Scope, lookup: Lookup) -> ReadFuture<Option<TaskRow>> {
        self.store.row(scope, lookup)
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

    fn last_input(&self, scope: &Scope, task: TaskNo) -> ReadFuture<Option<(Seq, Arc<Entry>)>> {
        self.store.last_input(scope, task)
    }

    fn last_status(&self, scope: &Scope, task: TaskNo, up_to: Seq) -> ReadFuture<Option<Arc<Entry>>> {
        self.store.last_status(scope, task, up_to)
    }

    fn list(&self, scope: &Scope, query: ListQuery) -> ReadFuture<ListPage> {
        self.store.list(scope, query)
    }

    fn turn_key(&self, scope: &Scope, owner: KeyOwner, key: MessageKey) -> ReadFuture<Option<KeyUsed>> {
        self.store.turn_key(scope, owner, key)
    }

    fn first_use(&self, key: MessageKey) -> ReadFuture<Option<KeyUsed>> {
        self.store.first_use(key)
    }

    fn count_open(&self, agent: &TenantAgent) -> ReadFuture<u64> {
        self.store.count_open(agent)
    }

    fn context(&self, scope: &Scope, lookup: ContextLookup) -> ReadFuture<Option<ContextRow>> {
        self.store.context(scope, lookup)
    }

    fn context_history(
        &self,
        scope: &Scope,
        first: TaskNo,
        before: TaskNo,
        max: usize,
        max_bytes: usize,
    ) -> ReadFuture<Vec<Snapshot>> {
        self.store.context_history(scope, first, before, max, max_bytes)
    }

    fn due(&self, now: Timestamp, max: usize) -> ReadFuture<Due> {
        if self.hides_due.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Ok(Due::default())));
        }
        self.store.due(now, max)
    }

    fn task_work(&self, task: TaskNo, tag: Tag) -> ReadFuture<Option<TaskWork>> {
        self.store.task_work(task, tag)
    }

    fn overdue(&self, now: Timestamp, max: usize) -> ReadFuture<Overdue> {
        self.store.overdue(now, max)
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

    fn agents(&self) -> ReadFuture<Vec<TenantAgent>> {
        self.store.agents()
    }

    fn expired(&self, expiry: Expiry) -> ReadFuture<Expired> {
        self.store.expired(expiry)
    }

    fn purge(&self, tasks: Vec<FinishedTask>, now: Timestamp) -> ReadFuture<usize> {
        self.store.purge(tasks, now)
    }

    fn drop_purged(&self, purged_before: Timestamp, max: usize) -> ReadFuture<usize> {
        self.store.drop_purged(purged_before, max)
    }

    fn retention_mark(&self) -> ReadFuture<Option<RetentionMark>> {
        self.store.retention_mark()
    }

    fn record_retention(&self, mark: RetentionMark) {
        self.store.record_retention(mark);
        self.retention_records.send_modify(|count| *count += 1);
    }

    fn reserve(&self, count: i64) -> ReadFuture<TaskNo> {
        self.store.reserve(count)
    }

    fn api_keys(&self) -> ReadFuture<Vec<ApiKey>> {
        self.store.api_keys()
    }

    fn insert_api_key(&self, key: ApiKey, max: usize) -> ReadFuture<bool> {
        self.store.insert_api_key(key, max)
    }

    fn revoke_api_key(&self, id: String, now: Timestamp) -> ReadFuture<bool> {
        self.store.revoke_api_key(id, now)
    }

    fn register_webhook(&self, task: TaskNo, webhook: NewWebhook, max: usize) -> ReadFuture<Registered> {
        self.store.register_webhook(task, webhook, max)
    }

    fn webhooks(&self, scope: &Scope, task: TaskNo) -> ReadFuture<Vec<Webhook>> {
        self.store.webhooks(scope, task)
    }

    fn delete_webhook(&self, task: TaskNo, id: ConfigId) -> ReadFuture<bool> {
        self.store.delete_webhook(task, id)
    }

    fn delivery_signal(&self) -> Arc<Notify> {
        self.store.delivery_signal()
    }

    fn due_webhooks(&self, query: DueWebhooksQuery) -> ReadFuture<DueWebhooks> {
        self.store.due_webhooks(query)
    }

    fn first_pending(&self, host: String) -> ReadFuture<Option<DueWebhook>> {
        self.store.first_pending(host)
    }

    fn pending_delivery(&self, webhook: WebhookNo) -> ReadFuture<Option<PendingDelivery>> {
        self.store.pending_delivery(webhook)
    }

    fn record_delivery(&self, result: DeliveryResult) -> ReadFuture<bool> {
        self.store.record_delivery(result)
    }

    fn release_host(&self, host: String, now: Timestamp) -> ReadFuture<bool> {
        self.store.release_host(host, now)
    }

    fn retry_delivery(&self, webhook: WebhookNo, now: Timestamp) -> ReadFuture<bool> {
        self.store.retry_delivery(webhook, now)
    }

    fn pending_deliveries(&self, after: WebhookNo, max: usize) -> ReadFuture<Vec<ListedDelivery>> {
        self.store.pending_deliveries(after, max)
    }

    fn dead_letters(&self, before: i64, max: usize) -> ReadFuture<Vec<DeadLetter>> {
        self.store.dead_letters(before, max)
    }

    fn dead_letter(&self, no: i64) -> ReadFuture<Option<DeadLetter>> {
        self.store.dead_letter(no)
    }

    fn delete_dead_letter(&self, no: i64) -> ReadFuture<bool> {
        self.store.delete_dead_letter(no)
    }

    fn expire_dead_letters(&self, died_before: Timestamp, max: usize) -> ReadFuture<usize> {
        self.store.expire_dead_letters(died_before, max)
    }

    fn agent_switches(&self) -> Vec<AgentSwitch> {
        self.store.agent_switches()
    }

    fn set_agent_switch(&self, switch: AgentSwitch) -> ReadFuture<bool> {
        self.store.set_agent_switch(switch)
    }

    fn tasks_of_all(&self, query: OperatorQuery) -> ReadFuture<OperatorPage> {
        self.store.tasks_of_all(query)
    }

    fn owner(&self, task: TaskNo, tag: Tag) -> ReadFuture<Option<Scope>> {
        self.store.owner(task, tag)
    }

    fn task_counts(&self) -> ReadFuture<TaskCounts> {
        self.store.task_counts()
    }

    fn metrics(&self) -> &StoreMetrics {
        self.store.metrics()
    }

    fn disk_usage(&self) -> ReadFuture<DiskUsage> {
        self.store.disk_usage()
    }

    fn ids(&self) -> Ids {
        self.store.ids()
    }

    fn seal_key(&self) -> [u8; 32] {
        self.store.seal_key()
    }

    fn failed(&self) -> BoxFuture<'static, String> {
        self.store.failed()
    }

    fn damaged(&self) -> BoxFuture<'static, String> {
        self.store.damaged()
    }
}
