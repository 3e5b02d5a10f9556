//! Looks a whole store over: gently beside a server that was not stopped in good order, or at once for its operator.

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

use super::{
    instance::{InstanceLock, InstanceState},
    readers,
};
use crate::OpenError;

/// After so many steps of the database machine there is a rest, so that calls hardly notice.
const STEPS: i32 = 20_000;
const REST: Duration = Duration::from_millis(2);

/// The thread that looks the store over after an unclean stop.
pub(super) struct Inspector {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Inspector {
    /// Starts looking; what is found is told once.
    pub(super) fn start(connection: Connection, found: watch::Sender<Option<String>>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("a2ad-inspect".into());
        let thread = thread
            .spawn(move || inspect(connection, &stopped, &found))
            .expect("the system can start a thread");
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn inspect(mut connection: Connection, stop: &Arc<AtomicBool>, found: &watch::Sender<Option<String>>) {
    let interrupted = Arc::clone(stop);
    let rested = connection.progress_handler(STEPS, Some(move || rest(&interrupted)));
    match rested.and_then(|()| findings(&connection, "PRAGMA quick_check(1)")) {
        Ok(findings) if findings.is_empty() => tracing::info!("the store was looked over and is whole"),
        Ok(findings) => {
            tracing::error!(finding = findings[0], "the store is damaged; restore a backup");
            found.send_replace(findings.into_iter().next());
        }
        Err(_) if stop.load(Ordering::Relaxed) => {}
        Err(error) if is_damage(&error) => {
            tracing::error!(%error, "the store cannot be read through; check the disk, restore a backup");
            found.send_replace(Some(format!("it cannot be read through: {error}")));
        }
        Err(error) => tracing::warn!(%error, "the store could not be looked over"),
    }
}

/// Whether a look that was cut short says something about the file: what cannot be read is not whole. Somebody else in
/// the way, or no memory, says nothing.
fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Rests a little; says whether to give up.
#[expect(clippy::disallowed_methods, reason = "a thread of its own that has nothing to wait for but time")]
fn rest(stop: &AtomicBool) -> bool {
    std::thread::sleep(REST);
    stop.load(Ordering::Relaxed)
}

/// What a check finds; nothing when the store is whole.
fn findings(connection: &Connection, check: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(check)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    rows.filter(|row| !row.as_ref().is_ok_and(|text| text == "ok")).collect()
}

/// Looks a store over that no server has open. Gives what is wrong with it.
pub fn check(path: &Path) -> Result<Vec<String>, OpenError> {
    if !path.exists() {
        let reason = "there is no such file".into();
        return Err(OpenError::Unusable { path: path.to_owned(), reason });
    }
    let failed = |error| OpenError::of_database(path, &error);
    let _lock = InstanceLock::acquire(path, InstanceState::Checking)?;
    let connection = readers::connect(path).map_err(failed)?;
    findings(&connection, "PRAGMA integrity_check").map_err(failed)
}

#[cfg(test)]
mod tests {
    use rusqlite::{Error, ffi};

    use super::*;

    #[test]
    fn what_cannot_be_read_is_damaged_and_what_is_locked_is_not() {
        let error = |code| Error::SqliteFailure(ffi::Error::new(code), None);
        for code in [ffi::SQLITE_IOERR_READ, ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            assert!(is_damage(&error(code)), "{code}");
        }
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED, ffi::SQLITE_NOMEM, ffi::SQLITE_INTERRUPT] {
            assert!(!is_damage(&error(code)), "{code}");
        }
    }
}
