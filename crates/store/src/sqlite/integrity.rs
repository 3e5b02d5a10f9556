//! Integrity checks of a whole store: in the background after an unclean shutdown, and when the operator runs one.
//!
//! The check in the background reads a small store in one transaction, as SQLite checks a file. A larger one is checked
//! in [`slices`], because a transaction that long would keep the write-ahead log from being reset. The check that an operator
//! runs also decodes every record ([`records`]).

mod records;
mod slices;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::watch;

use crate::sqlite::files::file_lock::Access;

use crate::sqlite::files::instance::{InstanceLock, InstanceState};

use crate::sqlite::files::{log_header, open};

use crate::sqlite::files::probe::{self, FileKind};

use crate::OpenError;
use crate::sqlite::files::store_files::StorePath;

/// Up to this size a store is checked in one transaction, which takes less than a tenth of a second.
const SMALL_STORE_BYTES: i64 = 16 << 20;
/// Pause between two slices, so that calls are hardly delayed.
const PAUSE: Duration = Duration::from_millis(2);
/// Number of SQLite virtual machine operations after which a statement checks whether the store is being closed.
const OPS_PER_STOP_CHECK: i32 = 20_000;

/// The thread that checks the store after an unclean shutdown. Dropping it interrupts the check and joins the thread.
pub(super) struct IntegrityChecker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl IntegrityChecker {
    /// Starts the check; damage is published once on `found`.
    pub(super) fn start(connection: Connection, found: watch::Sender<Option<String>>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("a2ad-integrity".into());
        let thread = thread
            .spawn(move || check_in_background(connection, &stopped, &found))
            .expect("the system can start a thread");
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for IntegrityChecker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn check_in_background(
    mut connection: Connection,
    stop: &Arc<AtomicBool>,
    found: &watch::Sender<Option<String>>,
) {
    let interrupted = Arc::clone(stop);
    let stopping = move || interrupted.load(Ordering::Relaxed);
    let interruptible = connection.progress_handler(OPS_PER_STOP_CHECK, Some(stopping));
    match interruptible.and_then(|()| first_finding(&connection, stop)) {
        Ok(None) if stop.load(Ordering::Relaxed) => {}
        Ok(None) => tracing::info!("integrity check of the store passed"),
        Ok(Some(finding)) => {
            tracing::error!(finding, "the store is damaged; restore a backup");
            found.send_replace(Some(finding));
        }
        Err(_) if stop.load(Ordering::Relaxed) => {}
        Err(error) if is_damage(&error) => {
            tracing::error!(%error, "integrity check could not read the whole store; check the disk, restore a backup");
            found.send_replace(Some(format!("integrity check could not read the whole store: {error}")));
        }
        Err(error) => tracing::warn!(%error, "integrity check of the store did not finish"),
    }
}

fn first_finding(connection: &Connection, stop: &AtomicBool) -> rusqlite::Result<Option<String>> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if number("page_count")? * number("page_size")? <= SMALL_STORE_BYTES {
        return Ok(findings(connection, "PRAGMA quick_check(1)")?.into_iter().next());
    }
    slices::check(connection, || pause(stop))
}

/// Whether an error that ended the check means that the file is damaged: unreadable data does. A lock held by another
/// connection, or a lack of memory, does not.
fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Pauses the check; returns whether to abort it.
#[expect(clippy::disallowed_methods, reason = "dedicated thread; the sleep slows the check down")]
fn pause(stop: &AtomicBool) -> bool {
    std::thread::sleep(PAUSE);
    stop.load(Ordering::Relaxed)
}

/// Runs a check statement; empty when it found no damage.
pub(super) fn findings(connection: &Connection, check: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(check)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    rows.filter(|row| !row.as_ref().is_ok_and(|text| text == "ok")).collect()
}

/// Checks the integrity of a store that no server has open, and leaves it as it is. Returns what it found; empty when
/// there is no damage.
pub fn check(path: &Path) -> Result<Vec<String>, OpenError> {
    let path = StorePath::of(path);
    if !path.real.exists() {
        let reason = "there is no such file".into();
        return Err(OpenError::Unusable { path: path.named, reason });
    }
    let _lock = InstanceLock::acquire(&path, Access::Read, InstanceState::Checking)?;
    if path.database_length() == 0 {
        let log = path.log_length() > 0;
        let empty = || "the file is empty: it was truncated, or no server has used it yet".to_owned();
        return Ok(vec![if log { probe::empty_with_log(&path) } else { empty() }]);
    }
    if let Some(reason) = log_header::damage(&path) {
        return Ok(vec![reason]);
    }
    if open::is_no_store(&path) {
        return Err(OpenError::Unusable { path: path.named, reason: open::NOT_A_STORE.into() });
    }
    match read_all(&path) {
        Ok(Some(findings)) => Ok(findings),
        Ok(None) => Err(OpenError::Foreign { path: path.named }),
        Err(error) if is_damage(&error) => Ok(vec![format!("the file cannot be read: {error}")]),
        Err(error) => Err(OpenError::of_database(&path, &error)),
    }
}

/// Reads the whole file; `None` if it belongs to another program.
fn read_all(path: &StorePath) -> rusqlite::Result<Option<Vec<String>>> {
    let connection = probe::open_unchanged(path)?;
    if probe::identify(&connection)? == FileKind::Foreign {
        return Ok(None);
    }
    let mut findings = findings(&connection, "PRAGMA integrity_check")?;
    findings.extend(records::check(&connection)?);
    Ok(Some(findings))
}

#[cfg(test)]
mod tests {
    use rusqlite::{Error, ffi};

    use super::*;

    #[test]
    fn unreadable_is_damage_and_locked_is_not() {
        let error = |code| Error::SqliteFailure(ffi::Error::new(code), None);
        for code in [ffi::SQLITE_IOERR_READ, ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            assert!(is_damage(&error(code)), "{code}");
        }
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED, ffi::SQLITE_NOMEM, ffi::SQLITE_INTERRUPT] {
            assert!(!is_damage(&error(code)), "{code}");
        }
    }
}
