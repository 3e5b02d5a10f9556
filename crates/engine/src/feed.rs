//! Live log entries of a task for its watchers (streams and blocking sends).
//!
//! The feed belongs to the task, not to one run: a watcher of a task that waits for input sees the next turn.
//! The feed only notifies and caches; the log is authoritative. The store publishes after each commit, in
//! commit order. A watcher holds a cursor, the number of the last entry it has read. Later entries come from
//! the feed's short cache when it reaches back far enough, else from the log. So a slow watcher applies no
//! backpressure to writers, and a watcher that subscribes first and reads its snapshot second sees every
//! entry exactly once.
//!
//! A task has an entry in the feed only while it is being watched.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    access::scope::Scope,
    ids::TaskNo,
    log::{Entry, Seq},
    store::{Store, StoreError},
};

/// Limits of one task's cache of recent entries.
const RECENT_ENTRIES: usize = 256;
const RECENT_BYTES: usize = 1 << 20;
/// Entries read from the log at a time; the store limits their bytes.
const LOG_BATCH: usize = 256;
/// How long a watcher waits before it reads again from an overloaded store.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The channels of all watched tasks. Cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

struct Inner {
    tasks: Mutex<HashMap<TaskNo, Watched>>,
    /// Set at shutdown, after all runs have ended or been released: watchers stop.
    drained: watch::Sender<bool>,
}

struct Watched {
    channel: Arc<Channel>,
    watchers: usize,
}

struct Channel {
    recent: Mutex<RecentEntries>,
    /// Number of the last published entry.
    head: watch::Sender<Seq>,
}

/// The most recently published entries. Entries of one commit share one buffer, so they are cached and
/// evicted together.
#[derive(Default)]
struct RecentEntries {
    commits: VecDeque<CommitEntries>,
    entries: usize,
    bytes: usize,
}

/// The entries of one commit.
struct CommitEntries {
    first: Seq,
    entries: Vec<Arc<Entry>>,
    bytes: usize,
}

impl Default for Feed {
    fn default() -> Self {
        Self(Arc::new(Inner { tasks: Mutex::default(), drained: watch::Sender::new(false) }))
    }
}

impl Feed {
    /// Notifies watchers of committed entries; the last one has number `last_seq`.
    pub fn publish(&self, task: TaskNo, last_seq: Seq, entries: &[Arc<Entry>]) {
        let Some(channel) = self.tasks().get(&task).map(|watched| Arc::clone(&watched.channel)) else {
            return;
        };
        let first = last_seq + 1 - entries.len() as Seq;
        lock(&channel.recent).push(first, entries);
        channel.head.send_replace(last_seq);
    }

    /// Ends all watchers, current and future ones.
    pub(crate) fn drain(&self) {
        self.0.drained.send_replace(true);
    }

    /// Subscribes to a task. The caller then reads a snapshot and moves the cursor to it.
    pub(crate) fn watch(&self, store: Arc<dyn Store>, scope: Scope, task: TaskNo) -> Watcher {
        let mut tasks = self.tasks();
        let watched = tasks.entry(task).or_insert_with(|| Watched {
            channel: Arc::new(Channel { recent: Mutex::default(), head: watch::Sender::new(0) }),
            watchers: 0,
        });
        watched.watchers += 1;
        let channel = Arc::clone(&watched.channel);
        drop(tasks);
        let head = channel.head.subscribe();
        Watcher {
            feed: self.clone(),
            store,
            scope,
            task,
            cursor: 0,
            committed: 0,
            channel,
            head,
            drained: self.0.drained.subscribe(),
        }
    }

    /// Number of tasks with at least one watcher.
    pub fn watched_tasks(&self) -> usize {
        self.tasks().len()
    }

    fn unwatch(&self, task: TaskNo) {
        let mut tasks = self.tasks();
        if let Some(watched) = tasks.get_mut(&task) {
            watched.watchers -= 1;
            if watched.watchers == 0 {
                tasks.remove(&task);
            }
        }
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<TaskNo, Watched>> {
        lock(&self.0.tasks)
    }
}

impl RecentEntries {
    fn push(&mut self, first: Seq, entries: &[Arc<Entry>]) {
        let bytes = entries.iter().map(|entry| entry.size()).sum();
        self.entries += entries.len();
        self.bytes += bytes;
        self.commits.push_back(CommitEntries { first, entries: entries.to_vec(), bytes });
        while self.entries > RECENT_ENTRIES || self.bytes > RECENT_BYTES {
            let Some(oldest) = self.commits.pop_front() else { break };
            self.entries -= oldest.entries.len();
            self.bytes -= oldest.bytes;
        }
    }

    /// The entries after a cursor, if the cache reaches back to it.
    fn after(&self, cursor: Seq) -> Option<Vec<(Seq, Arc<Entry>)>> {
        if self.commits.front()?.first > cursor + 1 {
            return None;
        }
        let numbered = self.commits.iter().flat_map(|commit| (commit.first..).zip(&commit.entries));
        Some(numbered.filter(|(seq, _)| *seq > cursor).map(|(seq, entry)| (seq, Arc::clone(entry))).collect())
    }
}

/// Follows one task from a cursor. Dropping it unsubscribes and has no other effect.
pub struct Watcher {
    feed: Feed,
    store: Arc<dyn Store>,
    scope: Scope,
    task: TaskNo,
    cursor: Seq,
    /// Number of the last entry the caller knows to be committed.
    committed: Seq,
    channel: Arc<Channel>,
    head: watch::Receiver<Seq>,
    drained: watch::Receiver<bool>,
}

/// Result of [`Watcher::follow`].
pub(crate) enum FeedEvent {
    /// At least one entry, in order, without a gap.
    Entries(Vec<(Seq, Arc<Entry>)>),
    /// The process is shutting down; the client should reconnect.
    Draining,
    /// The task was purged while it was being read.
    Purged,
}

impl Watcher {
    /// The watched task.
    pub(crate) fn task(&self) -> TaskNo {
        self.task
    }

    /// Moves the cursor; entries up to `committed` are in the log already.
    pub(crate) fn seek(&mut self, cursor: Seq, committed: Seq) {
        self.cursor = cursor;
        self.committed = committed;
    }

    /// Waits for entries after the cursor and moves it. Cancel safe: no entry is lost.
    pub(crate) async fn follow(&mut self) -> Result<FeedEvent, StoreError> {
        loop {
            // Read before the head, so that entries published before the drain are still delivered.
            let drained = *self.drained.borrow_and_update();
            let published = *self.head.borrow_and_update();
            if published.max(self.committed) > self.cursor {
                let entries = self.entries_after_cursor().await?;
                let Some((seq, _)) = entries.last() else { return Ok(FeedEvent::Purged) };
                self.cursor = *seq;
                return Ok(FeedEvent::Entries(entries));
            }
            if drained {
                return Ok(FeedEvent::Draining);
            }
            tokio::select! {
                // Neither returns an error: both senders live as long as the feed that this watcher holds.
                _ = self.head.changed() => {}
                _ = self.drained.changed() => {}
            }
        }
    }

    async fn entries_after_cursor(&self) -> Result<Vec<(Seq, Arc<Entry>)>, StoreError> {
        let recent = lock(&self.channel.recent).after(self.cursor);
        match recent {
            Some(entries) if !entries.is_empty() => Ok(entries),
            // Evicted from the cache, or committed but not yet published by the writer.
            _ => self.entries_from_log().await,
        }
    }

    /// A stream that has begun is delayed by an overloaded store, not ended.
    async fn entries_from_log(&self) -> Result<Vec<(Seq, Arc<Entry>)>, StoreError> {
        loop {
            match self.store.entries(&self.scope, self.task, self.cursor, LOG_BATCH).await {
                Err(StoreError::Overloaded) => tokio::time::sleep(RETRY_INTERVAL).await,
                read => return read,
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.feed.unwatch(self.task);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded data is consistent after every statement, so a panic in another thread leaves it valid.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
