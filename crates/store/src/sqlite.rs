//! The embedded store: one SQLite file in WAL mode, synced at every commit.
//!
//! One thread writes and commits everything queued in one transaction (group commit); a few threads read; one more
//! runs WAL checkpoints concurrently with the writer. Only one process at a time can open the file.

mod files;
mod integrity;
mod migrations;
mod reads;
mod tables;
mod writes;

use std::sync::Arc;

use engine::{
    AgentSwitch, ApiKey, Scope, Store,
    ids::{Ids, Tag, TaskNo},
    log::{Entry, Seq},
    metrics::{DiskUsage, StoreMetrics},
    store::{
        Change, ContextLookup, ContextRow, DeadLetter, DeliveryResult, Due, DueWebhook, DueWebhooks,
        DueWebhooksQuery, Expired, Expiry, FinishedTask, KeyOwner, KeyUsed, ListPage, ListQuery,
        ListedDelivery, Lookup, MessageKey, NewWebhook, OperatorPage, OperatorQuery, Overdue,
        PendingDelivery, ReadFuture, Receipt, Registered, RetentionMark, Snapshot, TaskCounts, TaskRow,
        TaskWork, TenantAgent, View, Webhook, WebhookNo, WorkItem,
    },
};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{ConfigId, Timestamp};
use tokio::sync::{Notify, watch};

pub use files::backup::{CopyError, StoreCopy, backup, restore};
pub use files::instance::{Draining, Instance, InstanceState, LockHolder, ServedAt, lock_holder};
pub use files::key_folder::{KeyFile, KeyFileError, KeyFolder, KeyForm, KeyOrigin};
pub use files::open::{OpenError, SqliteOptions};
pub use integrity::check;

use self::{
    files::{free_space::LowSpace, instance::InstanceLock, store_files::StorePath},
    integrity::IntegrityChecker,
    reads::{expiry, lists, operators, readers::ReaderPool, snapshots},
    tables::{api_keys, dead_letters, rows, scopes::ScopeCache, segments, webhooks},
    writes::{
        purge::{self, Purge},
        writer::{WebhookUpdate, Writer},
    },
};

/// An open store. Dropping it commits what is queued, then closes the file and releases the instance lock.
pub struct Sqlite {
    readers: Arc<ReaderPool>,
    /// Runs the background integrity check after an unclean shutdown.
    _integrity_checker: Option<IntegrityChecker>,
    /// Dropped after everything else that has a connection: its own is the one that removes the log.
    writer: Writer,
    scopes: ScopeCache,
    low_space: LowSpace,
    ids: Ids,
    seal_key: [u8; 32],
    /// As they were when the store was opened.
    agent_switches: Vec<AgentSwitch>,
    /// Notified when a webhook becomes due.
    deliveries: Arc<Notify>,
    metrics: Arc<StoreMetrics>,
    path: StorePath,
    damage: watch::Receiver<Option<String>>,
    /// Held as long as the store is open. The last field, so that it is dropped last.
    lock: Arc<InstanceLock>,
}

impl Sqlite {
    /// A handle that records this process's state in the instance lock, for other processes to read.
    pub fn instance(&self) -> Instance {
        Instance::of(&self.lock)
    }
}

/// Resolves with the first reason that is published; stays pending when the store is closed without one.
fn first_reason(mut reports: watch::Receiver<Option<String>>) -> BoxFuture<'static, String> {
    async move {
        match reports.wait_for(Option::is_some).await.map(|reason| reason.clone()) {
            Ok(Some(reason)) => reason,
            _ => std::future::pending().await,
        }
    }
    .boxed()
}

impl Store for Sqlite {
    fn commit(&self, change: Change) -> Receipt {
        self.writer.commit(change)
    }

    fn is_low_on_space(&self) -> bool {
        self.low_space.is_low()
    }

    fn row(&self, scope: &Scope, lookup: Lookup) -> ReadFuture<Option<TaskRow>> {
        let (ids, scope) = (self.ids.clone(), self.scopes.unresolved(scope));
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(None) };
            rows::find(tx, &ids, scope, &lookup)
        })
    }

    fn read(&self, scope: &Scope, lookup: Lookup, view: View) -> ReadFuture<Option<Snapshot>> {
        let (ids, scope) = (self.ids.clone(), self.scopes.unresolved(scope));
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(None) };
            let Some(row) = rows::find(tx, &ids, scope, &lookup)? else { return Ok(None) };
            snapshots::read(tx, row, &view).map(Some)
        })
    }

    fn entries(
        &self,
        scope: &Scope,
        task: TaskNo,
        after: Seq,
        max: usize,
    ) -> ReadFuture<Vec<(Seq, Arc<Entry>)>> {
        let scope = self.scopes.unresolved(scope);
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(Vec::new()) };
            segments::entries(tx, scope, task, after, max)
        })
    }

    fn last_status(&self, scope: &Scope, task: TaskNo, up_to: Seq) -> ReadFuture<Option<Arc<Entry>>> {
        let scope = self.scopes.unresolved(scope);
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(None) };
            segments::last_status(tx, scope, task, up_to)
        })
    }

    fn last_input(&self, scope: &Scope, task: TaskNo) -> ReadFuture<Option<(Seq, Arc<Entry>)>> {
        let scope = self.scopes.unresolved(scope);
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(None) };
            segments::last_input(tx, scope, task)
        })
    }

    fn list(&self, scope: &Scope, query: ListQuery) -> ReadFuture<ListPage> {
        let (ids, scope) = (self.ids.clone(), self.scopes.unresolved(scope));
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(ListPage::default()) };
            lists::list(tx, &ids, scope, &query)
        })
    }

    fn first_use(&self, key: MessageKey) -> ReadFuture<Option<KeyUsed>> {
        self.writer.first_use(key)
    }

    fn count_open(&self, agent: &TenantAgent) -> ReadFuture<u64> {
        let agent = agent.clone();
        self.readers.read(move |tx| Ok(expiry::count_open(tx, &agent)?))
    }

    fn context(&self, scope: &Scope, lookup: ContextLookup) -> ReadFuture<Option<ContextRow>> {
        let (ids, scope) = (self.ids.clone(), self.scopes.unresolved(scope));
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(None) };
            rows::context(tx, &ids, scope, &lookup)
        })
    }

    fn context_history(
        &self,
        scope: &Scope,
        first: TaskNo,
        before: TaskNo,
        max: usize,
        max_bytes: usize,
    ) -> ReadFuture<Vec<Snapshot>> {
        let (ids, scope) = (self.ids.clone(), self.scopes.unresolved(scope));
        self.readers.read_always(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(Vec::new()) };
            rows::context_history(tx, &ids, scope, first, before, max, max_bytes)
        })
    }

    fn due(&self, now: Timestamp, max: usize) -> ReadFuture<Due> {
        self.readers.read_always(move |tx| rows::due(tx, now, max))
    }

    fn overdue(&self, now: Timestamp, max: usize) -> ReadFuture<Overdue> {
        let ids = self.ids.clone();
        self.readers.read_always(move |tx| rows::overdue(tx, &ids, now, max))
    }

    fn task_work(&self, task: TaskNo, tag: Tag) -> ReadFuture<Option<TaskWork>> {
        self.readers.read(move |tx| rows::task_work(tx, task, tag))
    }

    fn work(&self, task: TaskNo) -> ReadFuture<Option<WorkItem>> {
        let ids = self.ids.clone();
        self.readers.read_always(move |tx| rows::work_item(tx, &ids, task))
    }

    fn turn_key(&self, scope: &Scope, owner: KeyOwner, key: MessageKey) -> ReadFuture<Option<KeyUsed>> {
        let scope = self.scopes.unresolved(scope);
        let ids = self.ids.clone();
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(None) };
            match owner {
                KeyOwner::Task(task) if rows::owns(tx, scope, task)? => Ok(rows::turn_key(tx, task, &key)?),
                KeyOwner::Task(_) => Ok(None),
                KeyOwner::Context(lookup) => rows::turn_key_in_context(tx, &ids, scope, &lookup, &key),
            }
        })
    }

    fn agents(&self) -> ReadFuture<Vec<TenantAgent>> {
        self.readers.read_always(move |tx| Ok(expiry::agents(tx)?))
    }

    fn expired(&self, expiry: Expiry) -> ReadFuture<Expired> {
        let (ids, raise) = (self.ids.clone(), self.writer.raiser());
        let found = self.readers.read_always(move |tx| expiry::find(tx, &ids, &expiry));
        async move {
            let (expired, raised) = found.await?;
            if !raised.is_empty() {
                raise(raised).await?;
            }
            Ok(expired)
        }
        .boxed()
    }

    fn purge(&self, tasks: Vec<FinishedTask>, now: Timestamp) -> ReadFuture<usize> {
        let (readers, queue) = (Arc::clone(&self.readers), self.writer.purge_queue());
        async move { Purge::new(tasks, now).run(&readers, &queue).await }.boxed()
    }

    fn drop_purged(&self, purged_before: Timestamp, max: usize) -> ReadFuture<usize> {
        let (readers, queue) = (Arc::clone(&self.readers), self.writer.purge_queue());
        async move {
            // With the tombstone, what remains of the task's rows would never be found again.
            for task in readers.read_always(|tx| Ok(purge::unfinished(tx)?)).await? {
                Purge::rest_of(task).run(&readers, &queue).await?;
            }
            queue.drop_purged(purged_before, max).await
        }
        .boxed()
    }

    fn retention_mark(&self) -> ReadFuture<Option<RetentionMark>> {
        self.readers.read_always(move |tx| Ok(expiry::retention_mark(tx)?))
    }

    fn record_retention(&self, mark: RetentionMark) {
        self.writer.record_retention(mark);
    }

    fn reserve(&self, count: i64) -> ReadFuture<TaskNo> {
        self.writer.reserve(count)
    }

    fn api_keys(&self) -> ReadFuture<Vec<ApiKey>> {
        self.readers.read_always(move |tx| Ok(api_keys::list(tx)?))
    }

    fn insert_api_key(&self, key: ApiKey, max: usize) -> ReadFuture<bool> {
        self.writer.insert_api_key(key, max)
    }

    fn revoke_api_key(&self, id: String, now: Timestamp) -> ReadFuture<bool> {
        self.writer.revoke_api_key(id, now)
    }

    fn agent_switches(&self) -> Vec<AgentSwitch> {
        self.agent_switches.clone()
    }

    fn set_agent_switch(&self, switch: AgentSwitch) -> ReadFuture<bool> {
        self.writer.set_agent_switch(switch)
    }

    fn register_webhook(&self, task: TaskNo, webhook: NewWebhook, max: usize) -> ReadFuture<Registered> {
        self.writer.register_webhook(task, webhook, max)
    }

    fn webhooks(&self, scope: &Scope, task: TaskNo) -> ReadFuture<Vec<Webhook>> {
        let scope = self.scopes.unresolved(scope);
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(Vec::new()) };
            webhooks::of_task(tx, scope, task)
        })
    }

    fn delete_webhook(&self, task: TaskNo, id: ConfigId) -> ReadFuture<bool> {
        self.writer.update_webhook(WebhookUpdate::Delete(task, id))
    }

    fn delivery_signal(&self) -> Arc<Notify> {
        Arc::clone(&self.deliveries)
    }

    fn due_webhooks(&self, query: DueWebhooksQuery) -> ReadFuture<DueWebhooks> {
        self.readers.read_always(move |tx| webhooks::due(tx, &query))
    }

    fn first_pending(&self, host: String) -> ReadFuture<Option<DueWebhook>> {
        self.readers.read_always(move |tx| webhooks::first_pending(tx, &host))
    }

    fn pending_delivery(&self, webhook: WebhookNo) -> ReadFuture<Option<PendingDelivery>> {
        let ids = self.ids.clone();
        self.readers.read_always(move |tx| webhooks::pending(tx, &ids, webhook))
    }

    fn record_delivery(&self, result: DeliveryResult) -> ReadFuture<bool> {
        self.writer.update_webhook(WebhookUpdate::Record(self.ids.clone(), Box::new(result)))
    }

    fn release_host(&self, host: String, now: Timestamp) -> ReadFuture<bool> {
        self.writer.update_webhook(WebhookUpdate::Release(host, now))
    }

    fn retry_delivery(&self, webhook: WebhookNo, now: Timestamp) -> ReadFuture<bool> {
        self.writer.update_webhook(WebhookUpdate::Retry(webhook, now))
    }

    fn pending_deliveries(&self, after: WebhookNo, max: usize) -> ReadFuture<Vec<ListedDelivery>> {
        self.readers.read(move |tx| webhooks::list_pending(tx, after, max))
    }

    fn dead_letters(&self, before: i64, max: usize) -> ReadFuture<Vec<DeadLetter>> {
        self.readers.read(move |tx| dead_letters::list(tx, before, max))
    }

    fn dead_letter(&self, no: i64) -> ReadFuture<Option<DeadLetter>> {
        self.readers.read(move |tx| dead_letters::find(tx, no))
    }

    fn delete_dead_letter(&self, no: i64) -> ReadFuture<bool> {
        self.writer.update_webhook(WebhookUpdate::DeleteLetter(no))
    }

    fn expire_dead_letters(&self, died_before: Timestamp, max: usize) -> ReadFuture<usize> {
        self.writer.expire_dead_letters(died_before, max)
    }

    fn tasks_of_all(&self, query: OperatorQuery) -> ReadFuture<OperatorPage> {
        let ids = self.ids.clone();
        self.readers.read(move |tx| operators::list(tx, &ids, &query))
    }

    fn owner(&self, task: TaskNo, tag: Tag) -> ReadFuture<Option<Scope>> {
        self.readers.read(move |tx| Ok(operators::owner(tx, task, tag)?))
    }

    fn task_counts(&self) -> ReadFuture<TaskCounts> {
        self.readers.read(|tx| operators::counts(tx))
    }

    fn metrics(&self) -> &StoreMetrics {
        &self.metrics
    }

    fn disk_usage(&self) -> ReadFuture<DiskUsage> {
        let path = self.path.clone();
        self.readers.read_always(move |_| Ok(path.disk_usage()))
    }

    fn ids(&self) -> Ids {
        self.ids.clone()
    }

    fn seal_key(&self) -> [u8; 32] {
        self.seal_key
    }

    fn failed(&self) -> BoxFuture<'static, String> {
        first_reason(self.writer.failure())
    }

    fn damaged(&self) -> BoxFuture<'static, String> {
        first_reason(self.damage.clone())
    }
}
