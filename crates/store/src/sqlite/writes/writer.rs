//! The only thread that writes (group commit).
//!
//! It never delays a commit to enlarge a batch: whatever is queued when the last commit is done becomes the next
//! commit, within the bounds of [`queue`](super::queue). While too much is queued, messages of clients are rejected;
//! what running work records is always queued, and the run waits for its receipt. A change whose guard matches no row is rejected and the rest of the batch is
//! committed. Any SQL error is fatal (fail-stop): after an I/O error the disk is not used again, the process stops,
//! and the file contains exactly what was acknowledged. So is the loss of a file ([`StoreFiles`]).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use engine::{
    AgentSwitch, ApiKey, Feed,
    ids::{Ids, TaskNo},
    metrics::StoreMetrics,
    store::{
        Change, Committed, DeliveryOutcome, DeliveryResult, KeyUsed, MessageKey, NewWebhook, NotCommitted,
        ReadFuture, Receipt, ReceiptSender, Registered, RetentionMark, StoreError, WebhookNo,
    },
};
use futures_util::FutureExt as _;
use protocol::{ConfigId, Timestamp};
use rusqlite::Connection;
use tokio::sync::{Notify, oneshot, watch};

use crate::sqlite::tables::agent_switches;

use crate::sqlite::tables::api_keys;

use super::changes::{self, WriteTransaction, WriterCache};

use crate::sqlite::files::checkpoint::Checkpointer;

use crate::sqlite::tables::dead_letters;

use crate::sqlite::tables::docs::{self, Doc, Docs};

use crate::sqlite::reads::expiry::{self, RaisedScope};

use super::free_pages::FreePages;

use crate::sqlite::files::free_space::{self, FreeSpace};

use crate::sqlite::files::open;

use super::purge::{self, Purge};

use super::queue::{self, JobQueue, JobSender};

use crate::sqlite::reads::readers;

use crate::sqlite::files::store_files::{LostFile, StoreFiles};

use crate::sqlite::tables::webhooks;

/// Size of a job that writes little, for the queue.
const SMALL_JOB_BYTES: usize = 64;
/// Approximate bytes written to the log per byte that a purge deletes.
const LOG_BYTES_PER_PURGED: u64 = 32;
/// Idle time before the writer releases free pages.
const IDLE: Duration = Duration::from_secs(1);
/// How long a stop waits for readers of other processes.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// Idle time between two slices while there are more pages to release.
const RELEASE_INTERVAL: Duration = Duration::from_millis(20);
/// Approximate bytes written to the log per released page: another page moves into its position.
const RELEASED_PAGE_BYTES: usize = 8 << 10;

/// Handle on the writer thread.
pub(crate) struct Writer {
    jobs: JobSender<Job>,
    failure: watch::Receiver<Option<String>>,
    thread: Option<JoinHandle<()>>,
}

enum Job {
    Change(Change, ReceiptSender),
    Reserve(i64, oneshot::Sender<TaskNo>),
    FirstUse(MessageKey, oneshot::Sender<Option<KeyUsed>>),
    /// The next slice of a purge.
    Purge(Purge, oneshot::Sender<Purge>),
    DropPurged(Timestamp, usize, oneshot::Sender<usize>),
    /// Scopes that had no expired task: they are not searched again before this time.
    Raise(Vec<RaisedScope>, oneshot::Sender<usize>),
    Retention(RetentionMark),
    /// An API key to be added, and how many valid ones its agent may have.
    InsertApiKey(Box<ApiKey>, usize, oneshot::Sender<bool>),
    /// The id of an API key to be revoked.
    RevokeApiKey(String, Timestamp, oneshot::Sender<bool>),
    /// An operator's decision about an agent.
    SetAgentSwitch(Box<AgentSwitch>, oneshot::Sender<bool>),
    /// A webhook, and how many others its task may have.
    RegisterWebhook(TaskNo, Box<NewWebhook>, usize, oneshot::Sender<Registered>),
    UpdateWebhook(WebhookUpdate, oneshot::Sender<bool>),
    /// Dead letters that are older than this are deleted, at most this many.
    ExpireDeadLetters(Timestamp, usize, oneshot::Sender<usize>),
    /// A doc; the sender is dropped when it is written, so that at most one is queued.
    Doc(Doc, mpsc::Sender<()>),
    /// The store is being closed: jobs queued before this one are still written, then the thread ends.
    Close,
}

/// A change of webhooks or of what is to be delivered to them.
pub(crate) enum WebhookUpdate {
    Delete(TaskNo, ConfigId),
    Record(Ids, Box<DeliveryResult>),
    /// A host whose pending deliveries are due now.
    Release(String, Timestamp),
    Retry(WebhookNo, Timestamp),
    DeleteLetter(i64),
}

impl WebhookUpdate {
    /// Approximate number of bytes it writes.
    fn size(&self) -> usize {
        match self {
            Self::Record(_, result) => match &result.outcome {
                DeliveryOutcome::Dead { letter, .. } => letter.body.len() + SMALL_JOB_BYTES,
                _ => SMALL_JOB_BYTES,
            },
            _ => SMALL_JOB_BYTES,
        }
    }

    /// Applies it. Returns whether it changed something, and whether a webhook may be due.
    fn apply(&self, connection: &Connection) -> rusqlite::Result<(bool, bool)> {
        match self {
            Self::Delete(task, id) => Ok((webhooks::delete(connection, *task, id)?, false)),
            Self::Record(ids, result) => webhooks::record(connection, ids, result),
            Self::Release(host, now) => webhooks::release(connection, host, *now).map(|any| (any, any)),
            Self::Retry(webhook, now) => webhooks::retry(connection, *webhook, *now).map(|any| (any, any)),
            Self::DeleteLetter(no) => Ok((dead_letters::delete(connection, *no)?, false)),
        }
    }
}

/// Who is notified of commits.
pub(crate) struct Published {
    pub(crate) feed: Feed,
    /// Notified when a webhook becomes due.
    pub(crate) deliveries: Arc<Notify>,
}

impl Writer {
    pub(crate) fn start(
        connection: Connection,
        cache: WriterCache,
        published: Published,
        checkpoints: Connection,
        folding: (Connection, Ids),
        watched: Watched,
        metrics: Arc<StoreMetrics>,
    ) -> Self {
        let (jobs, queue) = queue::queue(Arc::clone(&metrics));
        let (failed, failure) = watch::channel(None);
        let checkpointer = Checkpointer::start(checkpoints, failed.clone());
        let folded = jobs.clone();
        let docs = Docs::start(folding.0, folding.1, move |doc| {
            let (written, until_written) = mpsc::channel();
            let bytes = doc.size();
            let sent = folded.send(Job::Doc(doc, written), bytes);
            let _ = until_written.recv();
            sent
        });
        let free_pages = FreePages::new();
        let state =
            WriterState { cache, published, checkpointer, docs, free_pages, watched, metrics, connection };
        let thread = std::thread::Builder::new().name("a2ad-write".into());
        let work = move || {
            // A bug here must stop the server as an I/O error does, not leave callers waiting forever.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(state, queue, &failed))) {
                let text = readers::panic_text(&*panic);
                failed.send_replace(Some(WriteFailure::Panicked(text).to_string()));
            }
        };
        let thread = thread.spawn(work).expect("the system can start a thread");
        Self { jobs, failure, thread: Some(thread) }
    }

    pub(crate) fn commit(&self, change: Change) -> Receipt {
        let (receipts, receipt) = Receipt::new();
        if change.records_message() && self.jobs.is_full() {
            receipts.fill(Err(NotCommitted::Overloaded));
        } else {
            let bytes = changes::size(&change);
            self.jobs.send(Job::Change(change, receipts), bytes);
        }
        receipt
    }

    pub(crate) fn reserve(&self, count: i64) -> ReadFuture<TaskNo> {
        let (reply, first) = oneshot::channel();
        self.send(Job::Reserve(count, reply));
        await_reply(first)
    }

    /// Answered by the writer because recent keys are only in its memory.
    pub(crate) fn first_use(&self, key: MessageKey) -> ReadFuture<Option<KeyUsed>> {
        let (reply, used) = oneshot::channel();
        self.send(Job::FirstUse(key, reply));
        await_reply(used)
    }

    /// The jobs of a purge, queued one after the other.
    pub(crate) fn purge_queue(&self) -> PurgeQueue {
        PurgeQueue(self.jobs.clone())
    }

    pub(crate) fn record_retention(&self, mark: RetentionMark) {
        self.jobs.send(Job::Retention(mark), SMALL_JOB_BYTES);
    }

    pub(crate) fn insert_api_key(&self, key: ApiKey, max: usize) -> ReadFuture<bool> {
        let (reply, inserted) = oneshot::channel();
        self.send(Job::InsertApiKey(Box::new(key), max, reply));
        await_reply(inserted)
    }

    pub(crate) fn revoke_api_key(&self, id: String, now: Timestamp) -> ReadFuture<bool> {
        let (reply, revoked) = oneshot::channel();
        self.send(Job::RevokeApiKey(id, now, reply));
        await_reply(revoked)
    }

    pub(crate) fn set_agent_switch(&self, switch: AgentSwitch) -> ReadFuture<bool> {
        let (reply, set) = oneshot::channel();
        self.send(Job::SetAgentSwitch(Box::new(switch), reply));
        await_reply(set)
    }

    pub(crate) fn register_webhook(
        &self,
        task: TaskNo,
        webhook: NewWebhook,
        max: usize,
    ) -> ReadFuture<Registered> {
        let (reply, registered) = oneshot::channel();
        self.send(Job::RegisterWebhook(task, Box::new(webhook), max, reply));
        await_reply(registered)
    }

    pub(crate) fn update_webhook(&self, update: WebhookUpdate) -> ReadFuture<bool> {
        let (reply, changed) = oneshot::channel();
        let bytes = update.size();
        self.jobs.send(Job::UpdateWebhook(update, reply), bytes);
        await_reply(changed)
    }

    pub(crate) fn expire_dead_letters(&self, died_before: Timestamp, max: usize) -> ReadFuture<usize> {
        let (reply, deleted) = oneshot::channel();
        self.send(Job::ExpireDeadLetters(died_before, max, reply));
        await_reply(deleted)
    }

    /// A function for a reader that has found scopes without expired tasks.
    pub(crate) fn raiser(&self) -> impl FnOnce(Vec<RaisedScope>) -> ReadFuture<usize> + Send + use<> {
        let jobs = self.jobs.clone();
        move |scopes| {
            let (reply, count) = oneshot::channel();
            // A rejected job drops its sender, which the receiver reports.
            jobs.send(Job::Raise(scopes, reply), SMALL_JOB_BYTES);
            await_reply(count)
        }
    }

    /// The reason why the writer stopped, once it has.
    pub(crate) fn failure(&self) -> watch::Receiver<Option<String>> {
        self.failure.clone()
    }

    /// Queues a small job. After the writer has stopped, the job drops its reply channel, which the waiting caller
    /// reports as an error.
    fn send(&self, job: Job) {
        self.jobs.send(job, SMALL_JOB_BYTES);
    }
}

/// Queues the jobs of a purge. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PurgeQueue(JobSender<Job>);

impl PurgeQueue {
    /// Deletes the next slice.
    pub(crate) fn delete_slice(&self, purge: Purge) -> ReadFuture<Purge> {
        let (reply, rest) = oneshot::channel();
        self.0.send(Job::Purge(purge, reply), purge::SLICE_BYTES as usize);
        await_reply(rest)
    }

    /// Deletes tombstones.
    pub(crate) fn drop_purged(&self, purged_before: Timestamp, max: usize) -> ReadFuture<usize> {
        let (reply, count) = oneshot::channel();
        self.0.send(Job::DropPurged(purged_before, max, reply), SMALL_JOB_BYTES);
        await_reply(count)
    }
}

fn await_reply<T: Send + 'static>(reply: oneshot::Receiver<T>) -> ReadFuture<T> {
    async move { reply.await.map_err(|_| StoreError::Unavailable("the writer has stopped".into())) }.boxed()
}

impl Drop for Writer {
    /// Commits everything queued, then joins the thread.
    fn drop(&mut self) {
        self.send(Job::Close);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Why nothing is written any more. The message is for the operator, with what is known and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteFailure {
    #[error("{0}; {advice}", advice = advice(.0))]
    Sql(#[from] rusqlite::Error),
    #[error("the writer thread panicked: {0}; every acknowledged task is safe, start again")]
    Panicked(String),
    #[error(transparent)]
    LostFile(#[from] LostFile),
}

/// What is known after an error of the database, and what to do.
fn advice(error: &rusqlite::Error) -> &'static str {
    if open::is_corrupt(error) {
        "the store is damaged; stop the server, run a2ad check --store PATH, restore a backup"
    } else {
        "every acknowledged task is safe, check the disk and start again"
    }
}

/// What the writer looks at between commits.
pub(crate) struct Watched {
    pub(crate) files: StoreFiles,
    pub(crate) free_space: FreeSpace,
}

/// Everything the writer thread owns.
struct WriterState {
    cache: WriterCache,
    published: Published,
    checkpointer: Checkpointer,
    docs: Docs,
    free_pages: FreePages,
    watched: Watched,
    metrics: Arc<StoreMetrics>,
    /// Closed last: the last connection removes the log after a clean stop.
    connection: Connection,
}

/// The queue is dropped before the state, whose threads may wait for a queued job.
fn work(mut state: WriterState, mut queue: JobQueue<Job>, failed: &watch::Sender<Option<String>>) {
    let mut batch = Vec::new();
    let mut closing = false;
    while !closing {
        let done = match queue.next_batch(&mut batch, state.idle_timeout()) {
            Ok(bytes) => {
                closing = batch.iter().any(|job| matches!(job, Job::Close));
                let written = state.write(&mut batch);
                queue.release(bytes);
                written.and_then(|()| if closing { state.close() } else { state.release_free_pages() })
            }
            Err(RecvTimeoutError::Timeout) => {
                state.watched.free_space.written(0);
                state.check_files().and_then(|()| state.release_free_pages())
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if let Err(error) = done {
            tracing::error!(%error, "write to the store failed; the server must stop");
            // Dropping the batch and the queue reports to their callers that the writer has stopped. A batch whose
            // commit failed, or whose file was lost, may or may not be in the store.
            failed.send_replace(Some(error.to_string()));
            return;
        }
    }
}

/// Replies to jobs other than changes, sent after the commit.
#[derive(Default)]
struct Replies {
    reserved: Vec<(oneshot::Sender<TaskNo>, TaskNo)>,
    found: Vec<(oneshot::Sender<Option<KeyUsed>>, Option<KeyUsed>)>,
    counted: Vec<(oneshot::Sender<usize>, usize)>,
    purges: Vec<(oneshot::Sender<Purge>, Purge)>,
    done: Vec<(oneshot::Sender<bool>, bool)>,
    registered: Vec<(oneshot::Sender<Registered>, Registered)>,
}

impl Replies {
    fn send(self) {
        for (reply, first) in self.reserved {
            let _ = reply.send(first);
        }
        for (reply, used) in self.found {
            let _ = reply.send(used);
        }
        for (reply, count) in self.counted {
            let _ = reply.send(count);
        }
        for (reply, purge) in self.purges {
            let _ = reply.send(purge);
        }
        for (reply, done) in self.done {
            let _ = reply.send(done);
        }
        for (reply, registered) in self.registered {
            let _ = reply.send(registered);
        }
    }
}

/// A change that has been applied and waits for the commit, with the receipts of its caller.
struct Applied {
    change: Change,
    receipts: ReceiptSender,
    result: Result<Committed, NotCommitted>,
}

impl WriterState {
    /// Writes the whole batch in one transaction, then sends the replies.
    fn write(&mut self, batch: &mut Vec<Job>) -> Result<(), WriteFailure> {
        let mut applied = Vec::with_capacity(batch.len());
        let mut replies = Replies::default();
        let mut bytes = 0;
        let begun = Instant::now();
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut transaction = WriteTransaction::new(&self.connection)?;
        for job in batch.drain(..) {
            match job {
                Job::Change(change, receipts) => {
                    let result = transaction.apply(&mut self.cache, &change)?;
                    bytes += changes::size(&change);
                    applied.push(Applied { change, receipts, result });
                }
                Job::Reserve(count, reply) => {
                    let first = open::meta(&self.connection, "next_n")?.unwrap_or(1);
                    open::set_meta(&self.connection, "next_n", first + count)?;
                    replies.reserved.push((reply, TaskNo(first)));
                }
                Job::FirstUse(key, reply) => {
                    let used = changes::first_use(&self.connection, &self.cache.keys, &key)?;
                    replies.found.push((reply, used));
                }
                Job::Purge(mut purge, reply) => {
                    let deleted = purge.delete_slice(&self.connection, &mut self.cache)?;
                    bytes += usize::try_from(deleted / LOG_BYTES_PER_PURGED).unwrap_or(usize::MAX);
                    replies.purges.push((reply, purge));
                }
                Job::DropPurged(before, max, reply) => {
                    let before = before.as_millis();
                    let dropped = changes::drop_purged(&self.connection, &mut self.cache, before, max)?;
                    replies.counted.push((reply, dropped));
                }
                Job::Raise(scopes, reply) => {
                    replies.counted.push((reply, scopes.len()));
                    for (scope, ended_from) in scopes {
                        self.cache.scopes.set_ended_from(&self.connection, scope, ended_from)?;
                    }
                }
                Job::Retention(mark) => expiry::record_retention(&self.connection, mark)?,
                Job::InsertApiKey(key, max, reply) => {
                    replies.done.push((reply, api_keys::insert(&self.connection, &key, max)?));
                }
                Job::RevokeApiKey(id, now, reply) => {
                    replies.done.push((reply, api_keys::revoke(&self.connection, &id, now)?));
                }
                Job::SetAgentSwitch(switch, reply) => {
                    replies.done.push((reply, agent_switches::set(&self.connection, &switch)?));
                }
                Job::RegisterWebhook(task, webhook, max, reply) => {
                    let registered = webhooks::register(&self.connection, task, &webhook, max)?;
                    self.cache.webhooks_due |= registered == Registered::Stored;
                    replies.registered.push((reply, registered));
                }
                Job::UpdateWebhook(update, reply) => {
                    bytes += update.size();
                    let (changed, due) = update.apply(&self.connection)?;
                    self.cache.webhooks_due |= due;
                    replies.done.push((reply, changed));
                }
                Job::ExpireDeadLetters(before, max, reply) => {
                    let deleted = dead_letters::expire(&self.connection, before, max)?;
                    replies.counted.push((reply, deleted));
                }
                Job::Doc(doc, _written) => {
                    docs::keep(&self.connection, &doc)?;
                    bytes += doc.size();
                }
                Job::Close => {}
            }
        }
        drop(transaction);
        self.cache.counts.flush(&self.connection)?;
        self.cache.usage.flush(&self.connection)?;
        self.cache.scopes.delete_empty(&self.connection)?;
        self.cache.keys.maintain(&self.connection)?;
        if cfg!(a2ad_control = "early_reply") {
            self.publish(std::mem::take(&mut applied));
            delay_commit();
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        if !applied.is_empty() {
            self.metrics.commit_duration.observe_duration(begun.elapsed());
            self.metrics.commit_changes.observe(applied.len() as u64);
        }
        self.check_files()?;
        self.cache.scopes.committed();
        if !applied.is_empty() {
            self.free_pages.record_call();
        }
        self.publish(applied);
        replies.send();
        if std::mem::take(&mut self.cache.webhooks_due) {
            self.published.deliveries.notify_one();
        }
        for task in self.cache.grown.drain(..) {
            self.docs.grown(task);
        }
        self.watched.free_space.written(bytes);
        Ok(self.checkpointer.committed(bytes, &self.connection)?)
    }

    /// Checks that the files of the store are still those that were opened.
    fn check_files(&mut self) -> Result<(), WriteFailure> {
        Ok(self.watched.files.check(&self.connection)?)
    }

    /// How long the queue must stay empty before maintenance runs.
    fn idle_timeout(&self) -> Duration {
        if self.free_pages.has_more() { RELEASE_INTERVAL } else { IDLE }
    }

    /// Releases free pages in slices. The released pages are written to the log first, as every write is.
    fn release_free_pages(&mut self) -> Result<(), WriteFailure> {
        if self.checkpointer.is_behind() {
            return Ok(());
        }
        match self.free_pages.release(&self.connection)? {
            0 => Ok(()),
            pages => Ok(self.checkpointer.committed(pages * RELEASED_PAGE_BYTES, &self.connection)?),
        }
    }

    /// Records a clean shutdown, and copies the log into the database, so that one file is left.
    fn close(&mut self) -> Result<(), WriteFailure> {
        open::set_meta(&self.connection, "clean", 1)?;
        // A reader of another process, such as a backup, may take longer than a stop can wait.
        self.connection.busy_timeout(CLOSE_TIMEOUT)?;
        if !free_space::log_fits(&self.connection)? {
            tracing::warn!(
                "little disk space is left; the newest commits stay in <store>-wal, where the next start finds them"
            );
            return self.check_files();
        }
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        if self.connection.query_row(checkpoint, [], |row| row.get::<_, i64>(0))? != 0 {
            tracing::info!("the store is still being read; its newest commits may stay in <store>-wal");
        }
        self.check_files()?;
        Ok(open::remove_log_on_close(&self.connection, true)?)
    }

    /// Publishes to watchers and fills receipts, in commit order: nothing is visible before it is durable.
    fn publish(&self, applied: Vec<Applied>) {
        for Applied { change, receipts, result } in applied {
            if let Ok(committed) = &result {
                let (task, log) = match &change {
                    Change::Accept(accept) => (accept.no, &accept.log),
                    Change::Advance(advance) => (advance.no, &advance.log),
                };
                if !log.is_empty() {
                    self.published.feed.publish(task, committed.last_seq, log.entries());
                }
            }
            receipts.fill(result);
        }
    }
}

/// Gives a crash time to lose changes that were acknowledged before their commit. Only for `cargo xtask verify
/// kill_under_load --control`, which sets `a2ad_control`.
#[expect(clippy::disallowed_methods, reason = "a deliberately compiled-in fault, on the writer thread")]
fn delay_commit() {
    std::thread::sleep(std::time::Duration::from_millis(3));
}

#[cfg(test)]
mod tests {
    use rusqlite::{Error, ffi};

    use super::*;

    #[test]
    fn a_damaged_store_is_not_reported_as_safe() {
        let text = |code| WriteFailure::Sql(Error::SqliteFailure(ffi::Error::new(code), None)).to_string();
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            assert!(text(code).contains("the store is damaged") && !text(code).contains("safe"));
        }
        assert!(text(ffi::SQLITE_IOERR_FSYNC).contains("every acknowledged task is safe"));
    }
}
