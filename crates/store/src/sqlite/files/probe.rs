//! Recognises stores among the files of SQLite, and leaves a file that is none as it was.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _, path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::log_header;

use crate::sqlite::migrations;

use super::store_files::{StorePath, length};
use crate::OpenError;

/// Marks our files among those of SQLite (`PRAGMA application_id`): "a2ad" in ASCII.
pub(crate) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"a2ad");

/// Tables that stores have had since the first schema. Stores of earlier versions have no `application_id`.
const TABLES: [&str; 3] = ["meta", "tasks", "segments"];

/// What an existing file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A database without content, which can become a store.
    Empty,
    /// A store that this program can read.
    Store,
    /// A store of a later version.
    Newer {
        /// Its schema version.
        found: i64,
    },
    /// A database of another program.
    Foreign,
}

/// Checks that the file can be opened as a store: it is one, or is empty. Returns the connection that has read it, if
/// any: while that one is open, the next one need not read the log of a killed process again.
pub(crate) fn check_openable(path: &StorePath) -> Result<Option<Connection>, OpenError> {
    if path.database_length() == 0 {
        return check_new(path).map(|()| None);
    }
    require_log(path)?;
    let failed = |error: rusqlite::Error| OpenError::of_database(path, &error);
    let connection = open_unchanged(path).map_err(failed)?;
    let kind = identify(&connection).map_err(failed)?;
    if kind != FileKind::Empty {
        require_store(path, kind)?;
    }
    Ok(Some(connection))
}

/// Checks that SQLite finds in the log what was written to it.
pub(crate) fn require_log(path: &StorePath) -> Result<(), OpenError> {
    match log_header::damage(path) {
        Some(reason) => Err(OpenError::Unusable { path: path.named.clone(), reason }),
        None => Ok(()),
    }
}

/// Checks that the file is a store that this program can read.
pub(crate) fn require_store(path: &StorePath, kind: FileKind) -> Result<(), OpenError> {
    let path = path.named.clone();
    match kind {
        FileKind::Store => Ok(()),
        FileKind::Newer { found } => Err(OpenError::Newer { path, found, known: migrations::newest() }),
        FileKind::Foreign => Err(OpenError::Foreign { path }),
        FileKind::Empty => Err(OpenError::Unusable { path, reason: "it has no tables".into() }),
    }
}

/// SQLite ignores and removes the log of a database without pages, although it may have everything that is left of it.
fn check_new(path: &StorePath) -> Result<(), OpenError> {
    if path.log_length() == 0 {
        return Ok(());
    }
    Err(OpenError::Unusable { path: path.named.clone(), reason: empty_with_log(path) })
}

/// The text for a database file without content beside a log with content.
pub(crate) fn empty_with_log(path: &StorePath) -> String {
    format!(
        "the file is empty, but its log {} is not: put the database file back, or restore a backup",
        path.log().display()
    )
}

/// Opens an existing file to read it, so that neither the file nor its log changes, and no file appears beside it.
///
/// The exception is the journal of a process that was killed, which SQLite has to apply before the file can be read.
pub(crate) fn open_unchanged(path: &StorePath) -> rusqlite::Result<Connection> {
    let (wal, index) = (path.log_length() > 0, path.beside("-shm").exists());
    let connection = if length(&path.beside("-journal")) > 0 {
        open(&path.real, OpenFlags::SQLITE_OPEN_READ_WRITE)?
    } else if wal || index {
        open(&path.real, OpenFlags::SQLITE_OPEN_READ_ONLY)?
    } else {
        // Nobody has it open and nothing is pending; as "immutable" it needs no log and no locks.
        open_immutable(&path.real)?
    };
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Opens a file that nobody changes meanwhile. It has to be complete without its log.
pub(crate) fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    open(uri(path), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

fn open(path: impl AsRef<Path>, flags: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// `file:PATH?immutable=1`, with the characters escaped that mean something in a URI.
fn uri(path: &Path) -> OsString {
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").bytes()),
            _ => uri.push(*byte),
        }
    }
    uri.extend(b"?immutable=1");
    OsString::from_vec(uri)
}

/// What kind of database a connection has open.
pub(crate) fn identify(connection: &Connection) -> rusqlite::Result<FileKind> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (id, version) = (number("application_id")?, number("user_version")?);
    let mut names = connection.prepare("SELECT name FROM sqlite_schema")?;
    let names: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let has_ours = TABLES.iter().all(|ours| names.iter().any(|name| name == ours));
    let is_ours = id == i64::from(APPLICATION_ID) || id == 0 && (has_ours || names.is_empty());
    Ok(match version {
        _ if !is_ours => FileKind::Foreign,
        found if found > migrations::newest() => FileKind::Newer { found },
        0 if names.is_empty() => FileKind::Empty,
        _ if names.is_empty() => FileKind::Foreign,
        _ => FileKind::Store,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_a_uri_are_escaped() {
        assert_eq!(uri(Path::new("/a b/c?d#e%f.db")), "file:/a b/c%3fd%23e%25f.db?immutable=1");
    }
}
