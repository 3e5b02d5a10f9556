//! Moves committed pages from the write-ahead log into the database file, beside the writer.
//!
//! A passive checkpoint never blocks the writer, but a log that grows while it runs is never found finished,
//! and then never starts over. So when the log has become long, the writer is asked to do the small rest
//! itself between two commits; its next commit then begins the log anew.

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

/// How many bytes of news make a checkpoint worth its syncs.
const EVERY_BYTES: usize = 4 << 20;
/// How many pages the log may have before the writer helps: what a process that was killed leaves behind has to be
/// read before the next one can start.
const LONG_LOG_PAGES: i64 = 3_072;
/// How long a quiet store keeps pages in the log.
const IDLE: Duration = Duration::from_secs(2);

/// The writer's handle on the thread that checkpoints.
pub(super) struct Checkpointer {
    nudges: Option<mpsc::SyncSender<()>>,
    /// The log is long, and the writer has not helped yet.
    long: Arc<AtomicBool>,
    /// The log was long after the last round: a reader of an old moment keeps it from starting over.
    stays_long: Arc<AtomicBool>,
    news: usize,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread; a failure is told once and ends it: a disk that failed is not asked again.
    pub(super) fn start(connection: Connection, failed: watch::Sender<Option<String>>) -> Self {
        let (nudges, nudged) = mpsc::sync_channel(1);
        let (long, stays_long) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let flags = (Arc::clone(&long), Arc::clone(&stays_long));
        let thread = std::thread::Builder::new().name("a2ad-checkpoint".into());
        let thread = thread
            .spawn(move || work(&connection, &nudged, (&flags.0, &flags.1), &failed))
            .expect("the system can start a thread");
        Self { nudges: Some(nudges), long, stays_long, news: 0, thread: Some(thread) }
    }

    /// Whether what is written now only makes the log longer.
    pub(super) fn is_behind(&self) -> bool {
        self.stays_long.load(Ordering::Relaxed)
    }

    /// Counts what a commit has written; to be called by the writer after each one, on its own connection.
    pub(super) fn committed(&mut self, bytes: usize, connection: &Connection) -> rusqlite::Result<()> {
        self.news += bytes;
        if self.news >= EVERY_BYTES {
            self.news = 0;
            if let Some(nudges) = &self.nudges {
                // Full means that one is waiting already.
                let _ = nudges.try_send(());
            }
        }
        if self.long.swap(false, Ordering::Relaxed) {
            checkpoint(connection)?;
        }
        Ok(())
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.nudges = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(
    connection: &Connection,
    nudged: &mpsc::Receiver<()>,
    (long, stays_long): (&AtomicBool, &AtomicBool),
    failed: &watch::Sender<Option<String>>,
) {
    loop {
        match nudged.recv_timeout(IDLE) {
            Ok(()) | Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        match round(|| checkpoint(connection)) {
            Ok(still_long) => {
                stays_long.store(still_long, Ordering::Relaxed);
                long.fetch_or(still_long, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::error!(%error, "a checkpoint failed; the process has to stop");
                failed.send_replace(Some(error.to_string()));
                return;
            }
        }
    }
}

/// One checkpoint, or two; says whether the log stays so long that the writer has to help.
fn round(mut checkpoint: impl FnMut() -> rusqlite::Result<i64>) -> rusqlite::Result<bool> {
    if checkpoint()? <= LONG_LOG_PAGES {
        return Ok(false);
    }
    // Once more, for what came meanwhile: the shorter the rest, the shorter the writer is held up.
    checkpoint()?;
    Ok(true)
}

/// Copies what can be copied without waiting; gives the length of the log in pages. Somebody else at the same
/// work is no failure.
fn checkpoint(connection: &Connection) -> rusqlite::Result<i64> {
    match connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1)) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{Error, ffi};

    use super::*;

    /// What comes of a round whose checkpoints come to this.
    fn came_to(results: Vec<rusqlite::Result<i64>>) -> Option<bool> {
        let mut results = results.into_iter();
        let came_to = round(|| results.next().expect("a disk that failed is not asked again"));
        assert!(results.next().is_none(), "asked as often as needed");
        came_to.ok()
    }

    #[test]
    fn a_sync_that_fails_ends_the_round_whichever_it_is() {
        let failed = || Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None));
        assert_eq!(came_to(vec![Ok(0)]), Some(false));
        assert_eq!(came_to(vec![Ok(LONG_LOG_PAGES + 1), Ok(1)]), Some(true));
        assert_eq!(came_to(vec![failed()]), None);
        assert_eq!(came_to(vec![Ok(LONG_LOG_PAGES + 1), failed()]), None);
    }
}
