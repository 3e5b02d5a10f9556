//! Copies a whole store: a backup, beside the server that has the store open, and the way back.
//!
//! All pages are copied in one step of SQLite's backup API, which reads one snapshot: what was committed before the copy
//! began is in it, whole. The copy gets a temporary name in the directory of its target, is checked and synced, and is
//! renamed then, so that a file with the name of the target is always complete. `<store>.keys/` is copied before, where
//! there is one, to `<target>.keys/`.

mod key_files;
mod rename;

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use engine::Clock;
use protocol::Timestamp;
use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
};

use super::file_lock::{Access, FILE_MODE};

use super::instance::{InstanceState, LockFile};

use crate::sqlite::integrity;

use super::key_folder;

use super::open;

use super::probe;

use super::store_files::StorePath;
use crate::OpenError;

/// A finished copy of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCopy {
    /// The file that was written.
    pub path: PathBuf,
    /// How many tasks are in it.
    pub tasks: u64,
    /// Its size.
    pub bytes: u64,
    /// How many files were copied from the directory of keys.
    pub key_files: usize,
}

/// Why a store was not copied. Nothing is left of the copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source is no store, or the target is in use.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Something would be overwritten, or used together with the copy.
    #[error("{} exists; move it away or choose another path", path.display())]
    Exists {
        /// The file or directory.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// The database cannot be copied.
    #[error("the store {} cannot be copied: {reason}", path.display())]
    Database {
        /// The database file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The store that was copied is damaged.
    #[error("the store {} is damaged: {finding}; see a2ad check --store {}", path.display(), path.display())]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// What is wrong in the copy.
        finding: String,
    },
}

impl CopyError {
    /// For `map_err`: the error of a rename to a name that nothing has.
    fn renaming(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |reason| match reason.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists { path: path.to_owned() },
            _ => Self::File { path: path.to_owned(), reason },
        }
    }

    /// For `map_err`: an error of the operating system with the file that it is about.
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::File { path: path.to_owned(), reason }
    }
}

/// Copies a store, which a server may have open, to a new file. If `to` is a directory, the file is created in it, with
/// the date in its name.
pub fn backup(store: &Path, to: &Path) -> Result<StoreCopy, CopyError> {
    let source = StorePath::of(store);
    refuse_links(&source)?;
    drop(open_source(&source)?);
    if to.as_os_str().as_encoded_bytes().ends_with(b"/") && !to.is_dir() {
        let reason = io::Error::other("there is no such directory; create it, or name a file");
        return Err(CopyError::File { path: to.to_owned(), reason });
    }
    // The log of a process that was killed stays where it is. A log that this connection creates is removed.
    let keep_log = source.log_length() > 0;
    // A server may start or stop meanwhile, so this connection takes part in SQLite's locks.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&source.real, flags);
    let failed = |error: rusqlite::Error| OpenError::of_database(&source, &error);
    let connection = connection.map_err(failed)?;
    open::remove_log_on_close(&connection, !keep_log).map_err(failed)?;
    let to =
        if to.is_dir() { to.join(dated_name(&source.real, Clock::system().now())) } else { to.to_owned() };
    copy(&source, &connection, &StorePath::of(&to))
}

/// Creates a store from a backup. There must be none at this path, and no server that uses the path.
pub fn restore(from: &Path, store: &Path) -> Result<StoreCopy, CopyError> {
    let (source, target) = (StorePath::of(from), StorePath::of(store));
    let connection = open_source(&source)?;
    // A server that is started meanwhile is refused.
    let _lock = LockFile::acquire(&target, Access::Write, InstanceState::Restoring)?;
    copy(&source, &connection, &target)
}

/// Through another name of the file, the log with its newest commits would not be found.
fn refuse_links(source: &StorePath) -> Result<(), OpenError> {
    match fs::metadata(&source.real).map(|file| file.nlink()) {
        Ok(links) if links > 1 => Err(OpenError::Linked { path: source.named.clone(), links }),
        _ => Ok(()),
    }
}

/// Opens a store to read it as it is.
fn open_source(path: &StorePath) -> Result<Connection, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::of_database(path, &error);
    if !path.real.exists() {
        let reason = "there is no such file".into();
        return Err(OpenError::Unusable { path: path.named.clone(), reason });
    }
    probe::require_log(path)?;
    let connection = probe::open_unchanged(path).map_err(failed)?;
    let kind = probe::identify(&connection).map_err(failed)?;
    probe::require_store(path, kind).map(|()| connection)
}

/// `a2ad.db` as `a2ad-20260131T235959Z.db`.
fn dated_name(store: &Path, now: Timestamp) -> String {
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, extension) = (text(store.file_stem()), text(store.extension()));
    let now = now.to_string();
    let seconds = now.split(['.', 'Z']).next().unwrap_or_default().replace(['-', ':'], "");
    let dot = if extension.is_empty() { "" } else { "." };
    format!("{stem}-{seconds}Z{dot}{extension}")
}

fn copy(source: &StorePath, connection: &Connection, target: &StorePath) -> Result<StoreCopy, CopyError> {
    let (keys, target_keys) = (source.beside(key_folder::SUFFIX), target.beside(key_folder::SUFFIX));
    // A log or journal at the target would be applied to the copy when it is opened.
    let beside = [target.real.clone(), target.log(), target.beside("-journal"), target_keys.clone()];
    if let Some(path) = beside.into_iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(CopyError::Exists { path });
    }
    let unfinished = Unfinished::file(&target.real)?;
    copy_pages(source, connection, &unfinished.0)?;
    let tasks = inspect(source, &unfinished.0)?;
    let bytes = sync(&unfinished.0).map_err(CopyError::file(&unfinished.0))?;
    let key_files = key_files::copy(&keys, &target_keys)?;
    let renamed = rename::to_new_name(&unfinished.0, &target.real);
    if renamed.is_err() && key_files > 0 {
        let _ = fs::remove_dir_all(&target_keys);
    }
    renamed.map_err(CopyError::renaming(&target.named))?;
    let folder = target.real.parent().unwrap_or(Path::new("."));
    sync(folder).map_err(CopyError::file(folder))?;
    Ok(StoreCopy { path: target.named.clone(), tasks, bytes, key_files })
}

/// Copies all pages to an empty file, in one step.
fn copy_pages(source: &StorePath, connection: &Connection, to: &Path) -> Result<(), CopyError> {
    let failed = |error: rusqlite::Error| database_error(source, &error.to_string());
    connection.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(to, flags).map_err(failed)?;
    // The file has no name yet that anybody relies on; it is synced once, when it is complete.
    copy.pragma_update(None, "journal_mode", "OFF").map_err(failed)?;
    copy.pragma_update(None, "synchronous", "OFF").map_err(failed)?;
    let step = Backup::new(connection, &mut copy).and_then(|backup| backup.step(-1));
    let step = step.map_err(|error| match open::denied(source, error.sqlite_error_code()) {
        Some(advice) => database_error(source, &format!("{error}; {advice}")),
        None => failed(error),
    });
    match step? {
        StepResult::Done => Ok(()),
        _ => Err(database_error(source, "it is locked by another program")),
    }
}

fn database_error(source: &StorePath, reason: &str) -> CopyError {
    CopyError::Database { path: source.named.clone(), reason: reason.to_owned() }
}

/// Checks the copy; returns how many tasks it has.
fn inspect(source: &StorePath, copy: &Path) -> Result<u64, CopyError> {
    let damaged = |finding| CopyError::Damaged { path: source.named.clone(), finding };
    let failed = |error: rusqlite::Error| damaged(error.to_string());
    let connection = probe::open_immutable(copy).map_err(failed)?;
    let findings = integrity::findings(&connection, "PRAGMA quick_check(1)").map_err(failed)?;
    if let Some(finding) = findings.into_iter().next() {
        return Err(damaged(finding));
    }
    let count = "SELECT count(*) FROM tasks WHERE visible < 3";
    let tasks: i64 = connection.query_row(count, [], |row| row.get(0)).map_err(failed)?;
    Ok(tasks.unsigned_abs())
}

/// Syncs a file or directory; returns its length.
fn sync(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

/// A new file or directory with a temporary name, that is being written. Dropping it removes what still has this name.
struct Unfinished(PathBuf);

impl Unfinished {
    fn file(target: &Path) -> Result<Self, CopyError> {
        let path = Self::name(target);
        let created = File::options().write(true).create_new(true).mode(FILE_MODE).open(&path);
        created.map_err(CopyError::file(target))?;
        Ok(Self(path))
    }

    fn directory(target: &Path, mode: u32) -> Result<Self, CopyError> {
        let path = Self::name(target);
        fs::DirBuilder::new().mode(mode).create(&path).map_err(CopyError::file(target))?;
        Ok(Self(path))
    }

    /// Random, because containers that share a directory may have the same PIDs.
    fn name(target: &Path) -> PathBuf {
        let mut random = [0; 4];
        getrandom::fill(&mut random).expect("the operating system provides randomness");
        let mut name = target.to_owned().into_os_string();
        name.push(format!(".unfinished-{}-{:08x}", std::process::id(), u32::from_be_bytes(random)));
        name.into()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0).or_else(|_| fs::remove_dir_all(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_in_a_directory_has_the_date() {
        let now = Timestamp::parse("2026-01-31T23:59:59.123Z").unwrap();
        assert_eq!(dated_name(Path::new("/data/a2ad.db"), now), "a2ad-20260131T235959Z.db");
        assert_eq!(dated_name(Path::new("tasks"), now), "tasks-20260131T235959Z");
    }
}
