//! The audit log of a server: one JSON object in each line of a file beside the store.
//!
//! One thread writes it, so that no call waits for the disk; only a change of an operator waits until its line is
//! written. Refusals are merged: those of one sender with the same action within a second are one line with their
//! `count`, so that a flood cannot fill the disk. What does not fit into the queue is counted and reported in a line. A
//! crash may lose the refusals of the last second, never a change that was answered.
//!
//! A file that has reached its size is renamed, and the oldest one is removed ([`AuditOptions`]). Lines are numbered over
//! all files and starts (`seq`).

mod files;
mod line;

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use engine::Clock;
use futures_util::{FutureExt as _, future::BoxFuture};
use inbound::{Audit, AuditEntry};
use protocol::Timestamp;
use tokio::sync::{oneshot, watch};

pub use files::{AuditFiles, AuditOptions};

use crate::ServeError;

/// How many refusals may wait to be written; more are only counted.
const MAX_QUEUED: usize = 4_096;
/// How many different refusals are merged at a time; more are only counted.
const MAX_MERGED: usize = 1_024;
/// Refusals of this time are one line.
const MERGED_FOR: Duration = Duration::from_secs(1);

/// An open audit log. Dropping it writes what is queued.
pub struct AuditLog {
    jobs: Mutex<Sender<Job>>,
    pressure: Arc<Pressure>,
    newest: watch::Receiver<u64>,
    files: AuditFiles,
    thread: Option<JoinHandle<()>>,
}

/// Refusals that wait, and those that were dropped since the last line about that.
#[derive(Default)]
struct Pressure {
    queued: AtomicUsize,
    dropped: AtomicU64,
}

enum Job {
    /// The sender is dropped when the line is written.
    Change(AuditEntry, oneshot::Sender<()>),
    Refusal(AuditEntry),
    Close,
}

impl AuditLog {
    /// Starts the log. Its file is opened, and created if there is none, with the first entry: by then the caller has
    /// the store open, so that no other process writes to it.
    pub fn open(options: AuditOptions, clock: Clock) -> io::Result<Self> {
        let files = AuditFiles::new(options);
        let (jobs, queue) = mpsc::channel();
        let (published, newest) = watch::channel(0);
        let pressure = Arc::new(Pressure::default());
        let writer = Writer {
            files: files.clone(),
            file: None,
            last: 0,
            published,
            merged: HashMap::new(),
            pressure: Arc::clone(&pressure),
            clock,
            has_failed: false,
        };
        let thread =
            std::thread::Builder::new().name("a2ad-audit".into()).spawn(move || writer.run(&queue))?;
        Ok(Self { jobs: Mutex::new(jobs), pressure, newest, files, thread: Some(thread) })
    }

    fn send(&self, job: Job) {
        // A writer that has ended drops the job, which whoever waits for it notices.
        let _ = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).send(job);
    }
}

impl std::fmt::Debug for AuditLog {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("AuditLog").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.send(Job::Close);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Audit for AuditLog {
    fn record(&self, entry: AuditEntry) -> BoxFuture<'static, ()> {
        let (written, until_written) = oneshot::channel();
        self.send(Job::Change(entry, written));
        until_written.map(drop).boxed()
    }

    fn refuse(&self, entry: AuditEntry) {
        if self.pressure.queued.load(Ordering::Relaxed) >= MAX_QUEUED {
            self.pressure.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.pressure.queued.fetch_add(1, Ordering::Relaxed);
        self.send(Job::Refusal(entry));
    }

    fn read(&self, after: u64, max: usize, wait: Duration) -> BoxFuture<'static, io::Result<Vec<String>>> {
        let (files, mut newest) = (self.files.clone(), self.newest.clone());
        async move {
            // Whether an entry has come in time is seen below.
            let _ = tokio::time::timeout(wait, newest.wait_for(|newest| *newest > after)).await;
            tokio::task::spawn_blocking(move || files.read(after, max)).await.map_err(io::Error::other)?
        }
        .boxed()
    }
}

/// What the thread owns.
struct Writer {
    files: AuditFiles,
    /// `None` until the first entry, and after an error.
    file: Option<files::OpenFile>,
    /// The number of the last line of an open file.
    last: u64,
    published: watch::Sender<u64>,
    merged: HashMap<MergeKey, Merged>,
    pressure: Arc<Pressure>,
    clock: Clock,
    /// Whether writing has failed and was reported.
    has_failed: bool,
}

/// Refusals that differ in nothing else are one line: an entry without time, request and task.
type MergeKey = AuditEntry;

struct Merged {
    first: AuditEntry,
    count: u64,
    until: Instant,
}

impl Writer {
    fn run(mut self, queue: &Receiver<Job>) {
        loop {
            let next = self.merged.values().map(|merged| merged.until).min();
            let wait = next
                .map_or(Duration::from_secs(3_600), |until| until.saturating_duration_since(Instant::now()));
            match queue.recv_timeout(wait) {
                Ok(Job::Change(entry, written)) => {
                    // Earlier refusals come first.
                    self.write_merged(None);
                    self.write(&entry, 1);
                    self.sync();
                    drop(written);
                }
                Ok(Job::Refusal(entry)) => {
                    self.pressure.queued.fetch_sub(1, Ordering::Relaxed);
                    self.merge(entry);
                }
                Ok(Job::Close) | Err(RecvTimeoutError::Disconnected) => {
                    self.write_merged(None);
                    self.sync();
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.write_merged(Some(Instant::now()));
        }
    }

    fn merge(&mut self, entry: AuditEntry) {
        let key = MergeKey { time: Timestamp::from_millis(0), request_id: None, task: None, ..entry.clone() };
        if let Some(merged) = self.merged.get_mut(&key) {
            merged.count += 1;
        } else if self.merged.len() < MAX_MERGED {
            self.merged.insert(key, Merged { first: entry, count: 1, until: Instant::now() + MERGED_FOR });
        } else {
            self.pressure.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the refusals whose time is over at `now`, or all of them, oldest first, and how many were dropped.
    fn write_merged(&mut self, now: Option<Instant>) {
        let is_due = |merged: &Merged| now.is_none_or(|now| merged.until <= now);
        let mut due: Vec<Merged> =
            self.merged.extract_if(|_, merged| is_due(merged)).map(|(_, merged)| merged).collect();
        if due.is_empty() {
            return;
        }
        due.sort_by_key(|merged| merged.until);
        for merged in due {
            self.write(&merged.first, merged.count);
        }
        let dropped = self.pressure.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let entry = AuditEntry::done(self.clock.now(), "server", "refusals.dropped");
            self.write(&entry, dropped);
        }
    }

    fn write(&mut self, entry: &AuditEntry, count: u64) {
        match self.append(entry, count) {
            Ok(()) => {
                self.published.send_replace(self.last);
                self.has_failed = false;
            }
            Err(error) => {
                self.file = None;
                if !self.has_failed {
                    tracing::error!(%error, file = %self.files.path().display(), "the audit log cannot be written");
                }
                self.has_failed = true;
            }
        }
    }

    fn append(&mut self, entry: &AuditEntry, count: u64) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(self.files.open()?);
            self.last = self.files.last_number()?;
        }
        if let Some(file) = &mut self.file {
            file.append(&self.files, &line::encode(self.last + 1, entry, count))?;
            self.last += 1;
        }
        Ok(())
    }

    fn sync(&mut self) {
        if let Some(Err(error)) = self.file.as_mut().map(files::OpenFile::sync) {
            tracing::error!(%error, file = %self.files.path().display(), "the audit log cannot be synced");
        }
    }
}

/// Where the audit log of a store is unless it is configured.
pub fn default_file(store: &std::path::Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".audit.jsonl");
    name.into()
}

/// Opens the audit log beside a store, with the default options.
pub(crate) fn open_beside(store: &std::path::Path, clock: Clock) -> Result<AuditLog, ServeError> {
    let path = default_file(store);
    AuditLog::open(AuditOptions::at(path.clone()), clock).map_err(|reason| ServeError::Audit { path, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: &'static str) -> AuditEntry {
        AuditEntry::done(Timestamp::from_millis(0), "operator", action)
    }

    fn refusal(task: &str) -> AuditEntry {
        AuditEntry {
            refused: Some("UNAUTHENTICATED".into()),
            task: Some(task.into()),
            ..entry("refused.credential")
        }
    }

    fn clock() -> Clock {
        Clock::manual(Timestamp::from_millis(0))
    }

    #[tokio::test]
    async fn changes_are_numbered_over_files_and_starts() {
        let folder = tempfile::tempdir().unwrap();
        let options = AuditOptions { file: folder.path().join("a.jsonl"), max_size: 300, max_files: 2 };
        for _ in 0..4 {
            let log = AuditLog::open(options.clone(), clock()).unwrap();
            for _ in 0..2 {
                log.record(entry("agent.enable")).await;
            }
        }
        let files = AuditFiles::new(options.clone());
        let lines = files.read(0, 100).unwrap();
        let numbers: Vec<u64> = lines.iter().map(|line| line::number(line).unwrap()).collect();
        let newest: Vec<u64> = (1..=8).skip(8 - numbers.len()).collect();
        assert_eq!(numbers, newest, "the oldest files are removed, and no line in between is lost");
        assert!(numbers.len() < 8 && folder.path().read_dir().unwrap().count() == 3);
        assert_eq!(files.read(6, 1).unwrap().len(), 1);
        assert_eq!(files.read(8, 1).unwrap(), [""; 0]);
        let log = AuditLog::open(options, clock()).unwrap();
        assert_eq!(log.read(7, 10, Duration::ZERO).await.unwrap().len(), 1);
        let (waiting, ()) =
            tokio::join!(log.read(8, 10, Duration::from_secs(20)), log.record(entry("key.create")));
        assert!(waiting.unwrap()[0].contains("key.create"));
    }

    #[tokio::test]
    async fn repeated_refusals_are_one_line_and_a_flood_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let options = AuditOptions::at(folder.path().join("a.jsonl"));
        let log = AuditLog::open(options.clone(), clock()).unwrap();
        let flood = 20_000;
        for number in 0..flood {
            log.refuse(refusal(&number.to_string()));
        }
        drop(log);
        let lines = AuditFiles::new(options).read(0, 100).unwrap();
        let count = |line: &String| -> u64 {
            line.rsplit_once("\"count\":")
                .map_or(1, |(_, count)| count.trim_end_matches('}').parse().unwrap())
        };
        assert!(lines.len() < 100, "{}", lines.len());
        assert_eq!(lines.iter().map(count).sum::<u64>(), flood);
    }

    #[tokio::test]
    async fn a_line_that_was_cut_off_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let options = AuditOptions::at(folder.path().join("a.jsonl"));
        AuditLog::open(options.clone(), clock()).unwrap().record(entry("key.create")).await;
        let mut content = std::fs::read(&options.file).unwrap();
        content.extend_from_slice(b"{\"seq\":2,\"time");
        std::fs::write(&options.file, content).unwrap();
        AuditLog::open(options.clone(), clock()).unwrap().record(entry("key.revoke")).await;
        let lines = AuditFiles::new(options).read(0, 10).unwrap();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("{\"seq\":2,") && lines[1].contains("key.revoke"), "{lines:?}");
    }
}
