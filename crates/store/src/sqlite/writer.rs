//! The one thread that writes.
//!
//! It never waits for company: whatever is queued when the last commit is done becomes the next commit, at most
//! [`BATCH`] changes. A change whose guard finds no row is refused and the rest of the batch goes on. Any other
//! error is the end: a disk that failed once is not asked again. The process stops, and what is in the file is
//! what was acknowledged.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread::JoinHandle,
    time::Duration,
};

use engine::{
    Feed,
    ids::{Ids, TaskNo},
    store::{
        Change, Committed, Ended, KeyUsed, MessageKey, NotCommitted, Read, Receipt, Receipts, StoreError,
    },
};
use futures_util::FutureExt as _;
use protocol::Timestamp;
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::{
    changes::{self, Books, WriteTransaction},
    checkpoint::Checkpointer,
    docs::{self, Doc, Docs},
    free_pages::FreePages,
    open, readers,
    tallies::List,
};

/// How many changes one commit takes.
const BATCH: usize = 256;
/// How long the writer has nothing to do before it tidies up.
const IDLE: Duration = Duration::from_secs(1);
/// How long it rests while there is more to tidy up.
const REST: Duration = Duration::from_millis(20);
/// About how many bytes are written for a page that is given back: another one takes its place.
const GIVEN_BACK_BYTES: usize = 8 << 10;

/// The way to the writing thread.
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    failure: watch::Receiver<Option<String>>,
    thread: Option<JoinHandle<()>>,
}

enum Job {
    Change(Change, Receipts),
    Reserve(i64, oneshot::Sender<TaskNo>),
    FirstUse(MessageKey, oneshot::Sender<Option<KeyUsed>>),
    Purge(Vec<Ended>, Timestamp, oneshot::Sender<usize>),
    DropPurged(Timestamp, usize, oneshot::Sender<usize>),
    Doc(Doc),
    /// A list was long to count.
    Tally(List),
    /// The store is closed: what is queued before this is still written, then the thread ends.
    Close,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        books: Books,
        feed: Feed,
        checkpoints: Connection,
        folding: (Connection, Ids),
    ) -> Self {
        let (jobs, queue) = mpsc::channel();
        let (failed, failure) = watch::channel(None);
        let checkpointer = Checkpointer::start(checkpoints, failed.clone());
        let folded = jobs.clone();
        let docs = Docs::start(folding.0, folding.1, move |doc| drop(folded.send(Job::Doc(doc))));
        let free_pages = FreePages::new();
        let desk = WriterState { connection, books, feed, checkpointer, docs, free_pages };
        let thread = std::thread::Builder::new().name("a2ad-write".into());
        let work = move || {
            // A bug in here must stop the server as a failed disk does, not leave it waiting for ever.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(desk, &queue, &failed))) {
                failed.send_replace(Some(format!("the writer panicked: {}", readers::panic_text(&*panic))));
            }
        };
        let thread = thread.spawn(work).expect("the system can start a thread");
        Self { jobs, failure, thread: Some(thread) }
    }

    pub(super) fn commit(&self, change: Change) -> Receipt {
        let (receipts, receipt) = Receipt::new();
        self.send(Job::Change(change, receipts));
        receipt
    }

    pub(super) fn reserve(&self, count: i64) -> Read<TaskNo> {
        let (told, first) = oneshot::channel();
        self.send(Job::Reserve(count, told));
        answer(first)
    }

    /// Asked of the writer because young keys are nowhere else.
    pub(super) fn first_use(&self, key: MessageKey) -> Read<Option<KeyUsed>> {
        let (told, used) = oneshot::channel();
        self.send(Job::FirstUse(key, told));
        answer(used)
    }

    pub(super) fn purge(&self, tasks: Vec<Ended>, now: Timestamp) -> Read<usize> {
        let (told, count) = oneshot::channel();
        self.send(Job::Purge(tasks, now, told));
        answer(count)
    }

    pub(super) fn drop_purged(&self, purged_before: Timestamp, max: usize) -> Read<usize> {
        let (told, count) = oneshot::channel();
        self.send(Job::DropPurged(purged_before, max, told));
        answer(count)
    }

    /// The way for readers to tell of a list that was long to count.
    pub(super) fn tallier(&self) -> impl FnOnce(List) + Send + use<> {
        let jobs = self.jobs.clone();
        move |list| drop(jobs.send(Job::Tally(list)))
    }

    /// Says why the writer stopped, once it has.
    pub(super) fn failure(&self) -> watch::Receiver<Option<String>> {
        self.failure.clone()
    }

    fn send(&self, job: Job) {
        // A refused job drops its receipt, which whoever waits for it reports.
        let _ = self.jobs.send(job);
    }
}

fn answer<T: Send + 'static>(told: oneshot::Receiver<T>) -> Read<T> {
    async move { told.await.map_err(|_| StoreError::Unavailable("the writer has stopped".into())) }.boxed()
}

impl Drop for Writer {
    /// Everything handed over is still written.
    fn drop(&mut self) {
        self.send(Job::Close);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the writing thread has before it.
struct WriterState {
    connection: Connection,
    books: Books,
    feed: Feed,
    checkpointer: Checkpointer,
    docs: Docs,
    free_pages: FreePages,
}

fn work(mut desk: WriterState, queue: &mpsc::Receiver<Job>, failed: &watch::Sender<Option<String>>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut closing = false;
    while !closing {
        let done = match queue.recv_timeout(desk.patience()) {
            Ok(first) => {
                batch.push(first);
                batch.extend(queue.try_iter().take(BATCH - 1));
                closing = batch.iter().any(|job| matches!(job, Job::Close));
                desk.write(&mut batch).and_then(|()| if closing { desk.close() } else { desk.tidy_up() })
            }
            Err(mpsc::RecvTimeoutError::Timeout) if desk.books.counts.tallies.unfinished() => {
                desk.write(&mut batch)
            }
            Err(mpsc::RecvTimeoutError::Timeout) => desk.tidy_up(),
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        if let Err(error) = done {
            tracing::error!(%error, "the store cannot write any more; the process has to stop");
            // What is dropped here, in the batch and in the queue, tells its callers that it was not committed.
            failed.send_replace(Some(error.to_string()));
            return;
        }
    }
}

/// What is told about other jobs than changes.
#[derive(Default)]
struct News {
    reserved: Vec<(oneshot::Sender<TaskNo>, TaskNo)>,
    found: Vec<(oneshot::Sender<Option<KeyUsed>>, Option<KeyUsed>)>,
    counted: Vec<(oneshot::Sender<usize>, usize)>,
}

impl News {
    fn tell(self) {
        for (told, first) in self.reserved {
            let _ = told.send(first);
        }
        for (told, used) in self.found {
            let _ = told.send(used);
        }
        for (told, count) in self.counted {
            let _ = told.send(count);
        }
    }
}

/// A change that has been applied and waits for the commit, with whoever waits for it.
struct Applied {
    change: Change,
    receipts: Receipts,
    result: Result<Committed, NotCommitted>,
}

impl WriterState {
    /// One transaction for the whole batch, then the news.
    fn write(&mut self, batch: &mut Vec<Job>) -> rusqlite::Result<()> {
        let mut applied = Vec::with_capacity(batch.len());
        let mut news = News::default();
        let mut bytes = 0;
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut transaction = WriteTransaction::new(&self.connection)?;
        for job in batch.drain(..) {
            match job {
                Job::Change(change, receipts) => {
                    let result = transaction.apply(&mut self.books, &change)?;
                    bytes += changes::size(&change);
                    applied.push(Applied { change, receipts, result });
                }
                Job::Reserve(count, told) => {
                    let first = open::meta(&self.connection, "next_n")?.unwrap_or(1);
                    open::set_meta(&self.connection, "next_n", first + count)?;
                    news.reserved.push((told, TaskNo(first)));
                }
                Job::FirstUse(key, told) => {
                    let used = changes::first_use(&self.connection, &self.books.keys, &key)?;
                    news.found.push((told, used));
                }
                Job::Purge(tasks, now, told) => {
                    let now = now.as_millis();
                    let purged = changes::purge(&self.connection, &mut self.books, &tasks, now)?;
                    news.counted.push((told, purged));
                }
                Job::DropPurged(before, max, told) => {
                    let before = before.as_millis();
                    let dropped = changes::drop_purged(&self.connection, &mut self.books, before, max)?;
                    news.counted.push((told, dropped));
                }
                Job::Doc(doc) => docs::keep(&self.connection, &doc)?,
                Job::Tally(list) => self.books.counts.tallies.want(list),
                Job::Close => {}
            }
        }
        drop(transaction);
        self.books.counts.flush(&self.connection)?;
        self.books.keys.maintain(&self.connection)?;
        if cfg!(feature = "fault-early-reply") {
            self.tell(std::mem::take(&mut applied));
            dawdle();
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        if !applied.is_empty() {
            self.free_pages.called();
        }
        self.tell(applied);
        news.tell();
        for task in self.books.grown.drain(..) {
            self.docs.grown(task);
        }
        self.checkpointer.committed(bytes, &self.connection)
    }

    /// How long there must be nothing to do before something else is done.
    fn patience(&self) -> Duration {
        match (self.books.counts.tallies.unfinished(), self.free_pages.hurry()) {
            (true, _) => Duration::ZERO,
            (false, true) => REST,
            (false, false) => IDLE,
        }
    }

    /// Gives free pages back, a little at a time. They are written to the log first, as everything is.
    fn tidy_up(&mut self) -> rusqlite::Result<()> {
        if self.checkpointer.is_behind() {
            return Ok(());
        }
        match self.free_pages.give_back(&self.connection)? {
            0 => Ok(()),
            pages => self.checkpointer.committed(pages * GIVEN_BACK_BYTES, &self.connection),
        }
    }

    /// Notes that nothing was cut short, and leaves no log for the next process to read first.
    fn close(&self) -> rusqlite::Result<()> {
        open::set_meta(&self.connection, "clean", 1)?;
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }

    /// Tells watchers and callers, in commit order: nobody hears of a change before it is durable.
    fn tell(&self, applied: Vec<Applied>) {
        for Applied { change, receipts, result } in applied {
            if let Ok(committed) = &result {
                let (task, log) = match &change {
                    Change::Accept(accept) => (accept.no, &accept.log),
                    Change::Advance(advance) => (advance.no, &advance.log),
                };
                if !log.is_empty() {
                    self.feed.publish(task, committed.last_seq, log.entries());
                }
            }
            receipts.fill(result);
        }
    }
}

/// Gives the control run of the kill test something to find: answers that are not on the disk yet.
#[expect(
    clippy::disallowed_methods,
    reason = "a fault that is compiled in on purpose, on the writer's own thread"
)]
fn dawdle() {
    std::thread::sleep(std::time::Duration::from_millis(3));
}
