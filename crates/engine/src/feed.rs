//! Live entries of a task for whoever watches it.
//!
//! The feed belongs to the task, not to one run: a watcher of a task that waits for input sees the next turn.
//! It is a hint with the news attached; the log is the truth. The store publishes after each commit, in commit
//! order. A watcher holds a cursor, the number of the last entry it has seen: what follows is taken from the
//! short memory of the feed when it reaches back far enough, else from the log. So a slow watcher costs nobody
//! anything, and a watcher that registers first and reads its snapshot second misses nothing and repeats
//! nothing.
//!
//! A task has a place here only while somebody watches it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::{
    ids::TaskNo,
    log::{Entry, Seq},
    scope::Scope,
    store::{Store, StoreError},
};

/// How many entries, and how many bytes of them, one task's memory holds.
const MEMORY_ENTRIES: usize = 256;
const MEMORY_BYTES: usize = 1 << 20;
/// How many entries are read from the log at a time.
const LOG_BATCH: usize = 256;

/// All tasks that are being watched.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

struct Inner {
    tasks: Mutex<HashMap<TaskNo, Watched>>,
    /// The runs are over or have been let go: who still watches leaves.
    drained: watch::Sender<bool>,
}

struct Watched {
    channel: Arc<Channel>,
    watchers: usize,
}

struct Channel {
    memory: Mutex<Memory>,
    /// The number of the last entry published here.
    head: watch::Sender<Seq>,
}

/// What was published last. Entries of one commit share their bytes, so they are remembered and forgotten together.
#[derive(Default)]
struct Memory {
    commits: VecDeque<Remembered>,
    entries: usize,
    bytes: usize,
}

/// The entries of one commit.
struct Remembered {
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
    /// Tells watchers about entries that have been committed; the last one has number `last_seq`.
    pub fn publish(&self, task: TaskNo, last_seq: Seq, entries: &[Arc<Entry>]) {
        let Some(channel) = self.tasks().get(&task).map(|watched| Arc::clone(&watched.channel)) else {
            return;
        };
        let first = last_seq + 1 - entries.len() as Seq;
        lock(&channel.memory).push(first, entries);
        channel.head.send_replace(last_seq);
    }

    /// Sends watchers away, now and from now on.
    pub(crate) fn drain(&self) {
        self.0.drained.send_replace(true);
    }

    /// Starts watching a task. The caller reads where it stands afterwards and moves the cursor there.
    pub(crate) fn watch(&self, store: Arc<dyn Store>, scope: Scope, task: TaskNo) -> Watcher {
        let mut tasks = self.tasks();
        let watched = tasks.entry(task).or_insert_with(|| Watched {
            channel: Arc::new(Channel { memory: Mutex::default(), head: watch::Sender::new(0) }),
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
            known: 0,
            channel,
            head,
            drained: self.0.drained.subscribe(),
        }
    }

    /// How many tasks are being watched.
    pub fn watched_tasks(&self) -> usize {
        self.tasks().len()
    }

    fn forget(&self, task: TaskNo) {
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

impl Memory {
    fn push(&mut self, first: Seq, entries: &[Arc<Entry>]) {
        let bytes = entries.iter().map(|entry| entry.size()).sum();
        self.entries += entries.len();
        self.bytes += bytes;
        self.commits.push_back(Remembered { first, entries: entries.to_vec(), bytes });
        while self.entries > MEMORY_ENTRIES || self.bytes > MEMORY_BYTES {
            let Some(oldest) = self.commits.pop_front() else { break };
            self.entries -= oldest.entries.len();
            self.bytes -= oldest.bytes;
        }
    }

    /// The entries behind a cursor, if the memory reaches back to it.
    fn after(&self, cursor: Seq) -> Option<Vec<(Seq, Arc<Entry>)>> {
        if self.commits.front()?.first > cursor + 1 {
            return None;
        }
        let numbered = self.commits.iter().flat_map(|commit| (commit.first..).zip(&commit.entries));
        Some(numbered.filter(|(seq, _)| *seq > cursor).map(|(seq, entry)| (seq, Arc::clone(entry))).collect())
    }
}

/// Follows one task from a cursor. Dropping it stops the watching and nothing else.
pub struct Watcher {
    feed: Feed,
    store: Arc<dyn Store>,
    scope: Scope,
    task: TaskNo,
    cursor: Seq,
    /// The last entry the caller knows to be in the log already.
    known: Seq,
    channel: Arc<Channel>,
    head: watch::Receiver<Seq>,
    drained: watch::Receiver<bool>,
}

/// What following gives.
pub(crate) enum News {
    /// At least one entry, in order, without a gap.
    Entries(Vec<(Seq, Arc<Entry>)>),
    /// The process drains; the client should come back.
    Cut,
    /// The task was forgotten under its reader: there is nothing more to read.
    Gone,
}

impl Watcher {
    /// Moves the cursor; entries up to `known` are in the log already.
    pub(crate) fn seek(&mut self, cursor: Seq, known: Seq) {
        self.cursor = cursor;
        self.known = known;
    }

    /// Waits for what follows the cursor and moves it. May be dropped at any time: nothing is lost.
    pub(crate) async fn follow(&mut self) -> Result<News, StoreError> {
        loop {
            // Before the head is looked at: what is published before the drain is still seen.
            let drained = *self.drained.borrow_and_update();
            let published = *self.head.borrow_and_update();
            if published.max(self.known) > self.cursor {
                let entries = self.behind_cursor().await?;
                let Some((seq, _)) = entries.last() else { return Ok(News::Gone) };
                self.cursor = *seq;
                return Ok(News::Entries(entries));
            }
            if drained {
                return Ok(News::Cut);
            }
            tokio::select! {
                // Both senders live as long as the feed this watcher holds.
                _ = self.head.changed() => {}
                _ = self.drained.changed() => {}
            }
        }
    }

    async fn behind_cursor(&self) -> Result<Vec<(Seq, Arc<Entry>)>, StoreError> {
        let remembered = lock(&self.channel.memory).after(self.cursor);
        match remembered {
            Some(entries) if !entries.is_empty() => Ok(entries),
            // Not remembered, or committed so lately that the writer has not told yet.
            _ => self.store.entries(&self.scope, self.task, self.cursor, LOG_BATCH).await,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.feed.forget(self.task);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these locks guard is whole after every statement, so a panic elsewhere leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
