//! Runs WAL checkpoints: copies committed pages from the write-ahead log into the database file, concurrently with
//! the writer.
//!
//! A passive checkpoint never blocks the writer, but SQLite restarts the log at its beginning only when a checkpoint
//! has copied all of it, which never happens while the writer keeps appending. So when the log has become long, the
//! writer is asked to copy the small remainder itself between two commits; its next commit then restarts the log.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::watch;

use super::free_space;

use crate::sqlite::writes::writer::WriteFailure;

/// Bytes written after which a checkpoint is worth its syncs.
const CHECKPOINT_BYTES: usize = 4 << 20;
/// Log length in pages above which the writer helps. Bounded because the log of a killed process has to be read
/// before the next process can start.
const MAX_LOG_PAGES: i64 = 3_072;
/// How often an idle store is checkpointed.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);

/// The writer's handle on the checkpoint thread. Dropping it ends and joins the thread.
pub(crate) struct Checkpointer {
    requests: Option<mpsc::SyncSender<()>>,
    /// Set when the log is long and the writer has not checkpointed it yet.
    log_is_long: Arc<AtomicBool>,
    /// The log was still long after the last round: a reader with an old snapshot prevents the restart.
    log_stays_long: Arc<AtomicBool>,
    bytes_written: usize,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread. A failure is reported once on `failed` and ends the thread: after an I/O error the disk is
    /// not used again.
    pub(crate) fn start(connection: Connection, failed: watch::Sender<Option<String>>) -> Self {
        let (requests, requested) = mpsc::sync_channel(1);
        let (log_is_long, log_stays_long) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let flags = (Arc::clone(&log_is_long), Arc::clone(&log_stays_long));
        let thread = std::thread::Builder::new().name("a2ad-checkpoint".into());
        let thread = thread
            .spawn(move || work(&connection, &requested, (&flags.0, &flags.1), &failed))
            .expect("the system can start a thread");
        Self { requests: Some(requests), log_is_long, log_stays_long, bytes_written: 0, thread: Some(thread) }
    }

    /// Whether further optional writes would only make the log longer.
    pub(crate) fn is_behind(&self) -> bool {
        self.log_stays_long.load(Ordering::Relaxed)
    }

    /// Counts the bytes of a commit. The writer calls it after each commit, with its own connection.
    pub(crate) fn committed(&mut self, bytes: usize, connection: &Connection) -> rusqlite::Result<()> {
        self.bytes_written += bytes;
        if self.bytes_written >= CHECKPOINT_BYTES {
            self.bytes_written = 0;
            if let Some(requests) = &self.requests {
                // A full channel means that a request is already pending.
                let _ = requests.try_send(());
            }
        }
        if self.log_is_long.swap(false, Ordering::Relaxed) {
            checkpoint(connection)?;
        }
        Ok(())
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(
    connection: &Connection,
    requested: &mpsc::Receiver<()>,
    (log_is_long, log_stays_long): (&AtomicBool, &AtomicBool),
    failed: &watch::Sender<Option<String>>,
) {
    loop {
        match requested.recv_timeout(IDLE_INTERVAL) {
            Ok(()) | Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        match run_round(|| checkpoint(connection)) {
            Ok(still_long) => {
                log_stays_long.store(still_long, Ordering::Relaxed);
                log_is_long.fetch_or(still_long, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::error!(%error, "WAL checkpoint failed; the server must stop");
                failed.send_replace(Some(WriteFailure::Sql(error).to_string()));
                return;
            }
        }
    }
}

/// Runs one checkpoint, or two. Returns whether the log is so long that the writer has to help.
fn run_round(mut checkpoint: impl FnMut() -> rusqlite::Result<i64>) -> rusqlite::Result<bool> {
    if checkpoint()? <= MAX_LOG_PAGES {
        return Ok(false);
    }
    // Again for what was committed meanwhile: the shorter the remainder, the shorter the writer is blocked.
    checkpoint()?;
    Ok(true)
}

/// Copies what can be copied without waiting; returns the length of the log in pages. Neither a concurrent checkpoint is
/// a failure, nor a disk without space for the copies: the log has everything, and the next round tries again.
fn checkpoint(connection: &Connection) -> rusqlite::Result<i64> {
    if !free_space::log_fits(connection)? {
        return Ok(0);
    }
    match connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1)) {
        Err(error) if is_postponed(&error) => Ok(0),
        other => other,
    }
}

fn is_postponed(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DiskFull))
}

#[cfg(test)]
mod tests {
    use rusqlite::{Error, ffi};

    use super::*;

    /// The result of a round whose checkpoints give these results in order.
    fn result_of(results: Vec<rusqlite::Result<i64>>) -> Option<bool> {
        let mut results = results.into_iter();
        let result = run_round(|| results.next().expect("no checkpoint runs after a failed one"));
        assert!(results.next().is_none(), "every expected checkpoint ran");
        result.ok()
    }

    #[test]
    fn any_failed_sync_ends_the_round() {
        let failed = || Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None));
        assert_eq!(result_of(vec![Ok(0)]), Some(false));
        assert_eq!(result_of(vec![Ok(MAX_LOG_PAGES + 1), Ok(1)]), Some(true));
        assert_eq!(result_of(vec![failed()]), None);
        assert_eq!(result_of(vec![Ok(MAX_LOG_PAGES + 1), failed()]), None);
    }
}
