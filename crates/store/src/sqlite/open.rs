//! Opening a store: lock, settings, migrations, and what the last process left behind.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use engine::{Clock, Feed, ids::Ids};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, params};
use tokio::sync::watch;

use super::{
    Sqlite,
    changes::Books,
    counts::Counts,
    inspect::Inspector,
    instance::{Holder, InstanceLock, InstanceState, real_path},
    keys::Keys,
    migrations,
    readers::{self, Readers},
    scopes::Scopes,
    writer::Writer,
};
use crate::process::Process;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The database file; made when absent.
    pub path: PathBuf,
    /// How many threads read.
    pub readers: usize,
    /// Whether a commit waits for the disk. Off only in tests that are not about durability.
    pub sync: bool,
}

impl Options {
    /// A durable store at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), readers: 2, sync: true }
    }
}

/// Why a store cannot be opened. Each is one sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another a2ad has it open.
    #[error("the store {} is in use by another a2ad ({holder}); stop that one or choose another file with --store", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
        /// That process.
        holder: Box<Holder>,
    },
    /// A program that is not a2ad, or did not describe itself, has locked it.
    #[error("the store {} is locked by {}; stop that process or choose another file with --store", path.display(), described(process.as_deref()))]
    Locked {
        /// The file.
        path: PathBuf,
        /// That process, where it is known.
        process: Option<Box<Process>>,
    },
    /// A later version wrote it.
    #[error("the store {} has schema {found}, this a2ad knows {known}; use the newer a2ad that wrote it", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// It cannot be read or written.
    #[error("the store {} cannot be opened: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

fn described(process: Option<&Process>) -> String {
    process.map_or_else(|| "another program".to_owned(), Process::to_string)
}

impl OpenError {
    /// The error of the database, for the operator.
    pub(super) fn of_database(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let code = error.sqlite_error_code();
        if matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) {
            let process = Process::with_open_file(&[real_path(&path)]).map(Box::new);
            return Self::Locked { path, process };
        }
        Self::Unusable { path, reason: error.to_string() }
    }
}

impl Sqlite {
    /// Opens or makes the store. Work that an earlier process held is due again.
    pub fn open(options: &Options, feed: Feed, clock: &Clock) -> Result<Self, OpenError> {
        let path = &options.path;
        let lock = Arc::new(InstanceLock::acquire(path, InstanceState::Starting)?);
        let unusable = |error: rusqlite::Error| OpenError::of_database(path, &error);
        let mut connection = connect(path, options.sync).map_err(unusable)?;
        migrations::run(&mut connection).map_err(|failure| match failure {
            migrations::Failure::Newer { found, known } => {
                OpenError::Newer { path: path.clone(), found, known }
            }
            migrations::Failure::Sql(error) => unusable(error),
        })?;
        let start = start(&mut connection, clock.now().as_millis()).map_err(unusable)?;
        if !start.clean {
            probe(&connection)
                .map_err(unusable)?
                .map_or(Ok(()), |reason| Err(OpenError::Unusable { path: path.clone(), reason }))?;
        }
        if start.left_behind > 0 {
            tracing::info!(tasks = start.left_behind, "the last process left work behind; it is due again");
        }
        let scopes = Scopes::default();
        let readers = Readers::start(path, options.readers).map_err(unusable)?;
        let checkpoints = connect(path, options.sync).map_err(unusable)?;
        let ids = Ids::new(start.id_key);
        let keys = Keys::load(&connection).map_err(unusable)?;
        let books = Books {
            boot: start.boot,
            scopes: scopes.clone(),
            keys,
            counts: Counts::load(&connection).map_err(unusable)?,
            grown: Vec::new(),
        };
        let (found, damage) = watch::channel(None);
        let inspected = (!start.clean).then(|| readers::connect(path)).transpose().map_err(unusable)?;
        let inspector = inspected.map(|connection| Inspector::start(connection, found));
        let folding = (readers::connect(path).map_err(unusable)?, ids.clone());
        let writer = Writer::start(connection, books, feed, checkpoints, folding);
        Ok(Self {
            writer,
            readers,
            scopes,
            ids,
            seal_key: start.seal_key,
            damage,
            _inspector: inspector,
            lock,
        })
    }
}

/// A connection that may write.
fn connect(path: &Path, sync: bool) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // Before the first table. A page holds about six short tasks' segments: fewer pages for each commit to write.
    connection.pragma_update(None, "page_size", 8_192)?;
    // Likewise: freed pages can be given back later without rewriting the file.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    use_wal(&connection)?;
    connection.pragma_update(None, "synchronous", if sync { "FULL" } else { "OFF" })?;
    connection.pragma_update(None, "foreign_keys", "OFF")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "cache_size", -8_192)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Switches to the write-ahead log. The answer is the mode in force, and not every failure to change it is an error;
/// a sync that fails is one, but only once the statement has run to its end.
fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = statement.query([])?;
    let mode: String = match rows.next()? {
        Some(row) => row.get(0)?,
        None => String::new(),
    };
    while rows.next()?.is_some() {}
    if mode == "wal" {
        return Ok(());
    }
    let text = format!("its journal mode stays {mode:?} and cannot be made \"wal\"");
    Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR), Some(text)))
}

struct Start {
    boot: i64,
    /// The last process closed the store in good order.
    clean: bool,
    id_key: [u8; 16],
    seal_key: [u8; 32],
    left_behind: usize,
}

/// Counts this boot, makes the keys of a new store, and voids the leases of earlier boots: holding the lock
/// proves that none of their processes lives.
fn start(connection: &mut Connection, now: i64) -> rusqlite::Result<Start> {
    let tx = connection.transaction()?;
    let boot = 1 + meta(&tx, "boot")?.unwrap_or(0);
    set_meta(&tx, "boot", boot)?;
    let clean = boot == 1 || meta(&tx, "clean")? == Some(1);
    set_meta(&tx, "clean", 0)?;
    let id_key = key(&tx, "id_key")?;
    let seal_key = key(&tx, "seal_key")?;
    // At once the first time, then after up to twice as long each time: what takes its process down does not do so
    // again at once, nor together with everything else that ran then.
    let left_behind = tx.execute(
        "UPDATE tasks SET boot = 0, deaths = deaths + 1,
             next_run_at = ?1 + iif(deaths = 0, 0, abs(random() % (1 + min(100000, 1000 << min(deaths - 1, 7)))))
         WHERE boot > 0",
        params![now],
    )?;
    tx.commit()?;
    Ok(Start { boot, clean, id_key, seal_key, left_behind })
}

/// Looks at the newest tasks after an unclean stop: their logs must reach as far as their rows say.
fn probe(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let torn: Option<i64> = connection
        .query_row(
            "SELECT n FROM (SELECT n, last_seq FROM tasks WHERE visible < 3 ORDER BY n DESC LIMIT 1000) AS newest
             WHERE last_seq <> (SELECT coalesce(max(last_seq), 0) FROM segments
                                WHERE place BETWEEN newest.n << 24 AND (newest.n << 24) + 16777215)
             LIMIT 1",
            [],
            |row| row.get(0),
        )
        .optional()?;
    Ok(torn.map(|n| format!("the log of task {n} does not reach as far as its row says; restore a backup")))
}

/// A number kept in `meta`.
pub(super) fn meta(connection: &Connection, key: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    statement.query_row(params![key], |row| row.get(0)).optional()
}

/// Keeps a number in `meta`.
pub(super) fn set_meta(connection: &Connection, key: &str, value: i64) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?;
    statement.execute(params![key, value]).map(drop)
}

/// A random key, made once and kept in `meta`.
fn key<const N: usize>(connection: &Connection, name: &str) -> rusqlite::Result<[u8; N]> {
    let mut fresh = [0; N];
    getrandom::fill(&mut fresh).expect("the operating system provides randomness");
    connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?1, ?2)", params![name, fresh])?;
    connection.query_row("SELECT value FROM meta WHERE key = ?1", params![name], |row| row.get(0))
}
