//! The audit log of a server: one JSON object in each line of two files beside the store, one for changes by operators and
//! one for refusals, so that refusals never remove a change.
//!
//! One thread writes them, so that no call waits for the disk; only a change of an operator waits until its line is
//! written. Refusals are merged and limited for a second ([`refusals`]), so that a flood fills neither the disk nor the
//! memory. A crash may lose the refusals of the last second, never a change that was answered.
//!
//! A file that has reached its size is renamed, and the oldest one is removed ([`AuditOptions`]). Lines are numbered over
//! all files and starts (`seq`), in the order of their times.

mod files;
mod line;
mod refusals;
mod rotated_files;

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use engine::Clock;
use futures_util::{FutureExt as _, future::BoxFuture};
use inbound::{Audit, AuditEntry};
use tokio::sync::{oneshot, watch};

pub use files::{AuditFiles, AuditOptions};
pub use rotated_files::FileLimits;

use self::{
    refusals::{RefusalLine, Refusals},
    rotated_files::{OpenFile, RotatedFiles},
};
use crate::ServeError;

/// How long refusals are merged and their lines are counted.
const SECOND: Duration = Duration::from_secs(1);

/// An open audit log. Dropping it writes what is queued.
pub struct AuditLog {
    jobs: Mutex<Sender<Job>>,
    refusals: SharedRefusals,
    newest: watch::Receiver<u64>,
    files: AuditFiles,
    thread: Option<JoinHandle<()>>,
}

/// Refusals that the thread has not taken yet.
#[derive(Clone, Default)]
struct SharedRefusals(Arc<Mutex<Refusals>>);

impl SharedRefusals {
    fn lock(&self) -> MutexGuard<'_, Refusals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Job {
    /// The sender is dropped when the line is written.
    Change(Box<AuditEntry>, oneshot::Sender<()>),
    /// The first refusal of a second.
    Refusal,
    Close,
}

impl AuditLog {
    /// Starts the log. Its files are opened, and created if there are none, with the first entry: by then the caller has
    /// the store open, so that no other process writes to them.
    pub fn open(options: AuditOptions, clock: Clock) -> io::Result<Self> {
        let files = AuditFiles::new(options);
        let refusals = SharedRefusals::default();
        let (jobs, queue) = mpsc::channel();
        let (published, newest) = watch::channel(0);
        let writer = Writer {
            files: files.clone(),
            changes: OpenSeries::of(&files.changes),
            refused: OpenSeries::of(&files.refusals),
            last: None,
            published,
            refusals: refusals.clone(),
            clock,
            has_failed: false,
        };
        let thread =
            std::thread::Builder::new().name("a2ad-audit".into()).spawn(move || writer.run(&queue))?;
        Ok(Self { jobs: Mutex::new(jobs), refusals, newest, files, thread: Some(thread) })
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
        self.send(Job::Change(Box::new(entry), written));
        until_written.map(drop).boxed()
    }

    fn refuse(&self, entry: AuditEntry) {
        let is_first = self.refusals.lock().add(entry);
        if is_first {
            self.send(Job::Refusal);
        }
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
    changes: OpenSeries,
    refused: OpenSeries,
    /// The number of the last line; `None` until the first entry, and after an error.
    last: Option<u64>,
    published: watch::Sender<u64>,
    refusals: SharedRefusals,
    clock: Clock,
    /// Whether writing has failed and was reported.
    has_failed: bool,
}

/// Files to append to.
struct OpenSeries {
    files: RotatedFiles,
    /// `None` until the first entry, and after an error.
    file: Option<OpenFile>,
}

impl Writer {
    fn run(mut self, queue: &Receiver<Job>) {
        let mut end_of_second: Option<Instant> = None;
        loop {
            let wait = end_of_second
                .map_or(Duration::from_secs(3_600), |end| end.saturating_duration_since(Instant::now()));
            match queue.recv_timeout(wait) {
                Ok(Job::Change(entry, written)) => {
                    // Lines are in the order of their times.
                    let earlier = self.refusals.lock().take();
                    self.write_refusals(earlier);
                    self.write_change(&entry);
                    drop(written);
                }
                Ok(Job::Refusal) => end_of_second = Some(Instant::now() + SECOND),
                Ok(Job::Close) | Err(RecvTimeoutError::Disconnected) => {
                    self.end_second();
                    self.changes.sync();
                    self.refused.sync();
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if end_of_second.take_if(|end| *end <= Instant::now()).is_some() {
                self.end_second();
            }
        }
    }

    fn write_change(&mut self, entry: &AuditEntry) {
        let written =
            append(&self.files, &mut self.last, &mut self.changes, |number| line::encode(number, entry, 1));
        self.check(written);
        self.changes.sync();
    }

    fn write_refusals(&mut self, lines: Vec<RefusalLine>) {
        for refusal in lines {
            self.write_refused(|number| line::encode(number, &refusal.first, refusal.count));
        }
    }

    fn end_second(&mut self) {
        let (lines, dropped) = self.refusals.lock().end_second();
        self.write_refusals(lines);
        if let Some(dropped) = dropped {
            let now = self.clock.now();
            self.write_refused(|number| line::encode_dropped(number, now, &dropped));
        }
    }

    fn write_refused(&mut self, line: impl FnOnce(u64) -> Vec<u8>) {
        let written = append(&self.files, &mut self.last, &mut self.refused, line);
        self.check(written);
    }

    /// Publishes the number of the line that was written, or reports why it was not.
    fn check(&mut self, written: io::Result<u64>) {
        match written {
            Ok(number) => {
                self.published.send_replace(number);
                self.has_failed = false;
            }
            Err(error) => {
                if !self.has_failed {
                    tracing::error!(%error, file = %self.files.path().display(), "the audit log cannot be written");
                }
                self.has_failed = true;
            }
        }
    }
}

/// Appends the line after the last one; returns its number.
fn append(
    files: &AuditFiles,
    last: &mut Option<u64>,
    series: &mut OpenSeries,
    line: impl FnOnce(u64) -> Vec<u8>,
) -> io::Result<u64> {
    let number = 1 + match last.take() {
        Some(last) => last,
        None => files.last_number()?,
    };
    let mut file = match series.file.take() {
        Some(file) => file,
        None => series.files.open()?,
    };
    file.append(&series.files, &line(number))?;
    series.file = Some(file);
    *last = Some(number);
    Ok(number)
}

impl OpenSeries {
    fn of(files: &RotatedFiles) -> Self {
        Self { files: files.clone(), file: None }
    }

    fn sync(&mut self) {
        if let Some(Err(error)) = self.file.as_mut().map(OpenFile::sync) {
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
    use protocol::Timestamp;

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
        let changes = FileLimits { max_size: 300, max_files: 2 };
        let options = AuditOptions { changes, ..AuditOptions::at(folder.path().join("a.jsonl")) };
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
