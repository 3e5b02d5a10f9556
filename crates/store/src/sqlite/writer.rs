//! The one thread that writes.
//!
//! It never waits for company: whatever is queued when the last commit is done becomes the next commit, at most
//! [`BATCH`] changes. A change whose guard finds no row is refused and the rest of the batch goes on. Any other
//! error is the end: a disk that failed once is not asked again. The process stops, and what is in the file is
//! what was acknowledged.

use std::{sync::mpsc, thread::JoinHandle};

use engine::{
    Feed,
    ids::TaskNo,
    store::{Change, Committed, NotCommitted, Read, Receipt, Receipts, StoreError},
};
use futures_util::FutureExt as _;
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::{changes, checkpoint::Checkpointer, open, scopes::Scopes};

/// How many changes one commit takes.
const BATCH: usize = 256;

/// The way to the writing thread.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    failure: watch::Receiver<Option<String>>,
    thread: Option<JoinHandle<()>>,
}

enum Job {
    Change(Change, Receipts),
    Reserve(i64, oneshot::Sender<TaskNo>),
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        boot: i64,
        scopes: Scopes,
        feed: Feed,
        checkpointer: Checkpointer,
    ) -> Self {
        let (jobs, queue) = mpsc::channel();
        let (failed, failure) = watch::channel(None);
        let desk = Desk { connection, boot, scopes, feed, checkpointer };
        let thread = std::thread::Builder::new().name("a2ad-write".into());
        let thread =
            thread.spawn(move || work(desk, &queue, &failed)).expect("the system can start a thread");
        Self { jobs: Some(jobs), failure, thread: Some(thread) }
    }

    pub(super) fn commit(&self, change: Change) -> Receipt {
        let (receipts, receipt) = Receipt::new();
        self.send(Job::Change(change, receipts));
        receipt
    }

    pub(super) fn reserve(&self, count: i64) -> Read<TaskNo> {
        let (told, first) = oneshot::channel();
        self.send(Job::Reserve(count, told));
        async move { first.await.map_err(|_| StoreError::Unavailable("the writer has stopped".into())) }
            .boxed()
    }

    /// Says why the writer stopped, once it has.
    pub(super) fn failure(&self) -> watch::Receiver<Option<String>> {
        self.failure.clone()
    }

    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // A refused job drops its receipt, which whoever waits for it reports.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Writer {
    /// Everything handed over is still written.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the writing thread has before it.
struct Desk {
    connection: Connection,
    boot: i64,
    scopes: Scopes,
    feed: Feed,
    checkpointer: Checkpointer,
}

fn work(mut desk: Desk, queue: &mpsc::Receiver<Job>, failed: &watch::Sender<Option<String>>) {
    let mut batch = Vec::with_capacity(BATCH);
    while let Ok(first) = queue.recv() {
        batch.push(first);
        batch.extend(queue.try_iter().take(BATCH - 1));
        if let Err(error) = desk.write(&mut batch) {
            tracing::error!(%error, "the store cannot write any more; the process has to stop");
            // What is dropped here, in the batch and in the queue, tells its callers that it was not committed.
            failed.send_replace(Some(error.to_string()));
            return;
        }
    }
}

/// A change that has been applied and waits for the commit, with whoever waits for it.
struct Applied {
    change: Change,
    receipts: Receipts,
    result: Result<Committed, NotCommitted>,
}

impl Desk {
    /// One transaction for the whole batch, then the news.
    fn write(&mut self, batch: &mut Vec<Job>) -> rusqlite::Result<()> {
        let mut applied = Vec::with_capacity(batch.len());
        let mut reserved = Vec::new();
        let mut bytes = 0;
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for job in batch.drain(..) {
            match job {
                Job::Change(change, receipts) => {
                    let result = changes::apply(&self.connection, self.boot, &self.scopes, &change)?;
                    bytes += changes::size(&change);
                    applied.push(Applied { change, receipts, result });
                }
                Job::Reserve(count, told) => {
                    let first = open::meta(&self.connection, "next_n")?.unwrap_or(1);
                    open::set_meta(&self.connection, "next_n", first + count)?;
                    reserved.push((told, TaskNo(first)));
                }
            }
        }
        if cfg!(feature = "fault-early-reply") {
            self.tell(std::mem::take(&mut applied));
            dawdle();
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.tell(applied);
        for (told, first) in reserved {
            let _ = told.send(first);
        }
        self.checkpointer.committed(bytes, &self.connection);
        Ok(())
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
