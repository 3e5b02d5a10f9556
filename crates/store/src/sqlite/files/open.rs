//! Opens a store: instance lock, whether the file is a store, connection settings, migrations, and recovery of what the previous process left.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use engine::{Clock, Feed, ids::Ids, metrics::StoreMetrics};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, config::DbConfig, params};
use tokio::sync::{Notify, watch};

use crate::sqlite::Sqlite;

use crate::sqlite::tables::agent_switches;

use crate::sqlite::writes::changes::WriterCache;

use crate::sqlite::tables::counts::Counts;

use super::file_lock::Access;

use super::free_space::{self, FreeSpace};

use super::instance::{self, InstanceLock, InstanceState, LockHolder};

use crate::sqlite::integrity::IntegrityChecker;

use crate::sqlite::tables::keys::KeyIndex;

use crate::sqlite::migrations;

use super::probe;

use crate::sqlite::reads::readers::{self, ReaderPool};

use crate::sqlite::tables::scopes::{ScopeCache, Scopes};

use super::store_files::{StoreFiles, StorePath};

use crate::sqlite::tables::usage::Usage;

use crate::process::Process;
use crate::sqlite::writes::writer::{Published, Watched, Writer};

/// How [`Sqlite::open`] opens a store.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The database file; created when absent.
    pub path: PathBuf,
    /// Number of reader threads.
    pub readers: usize,
    /// Whether a commit waits for the disk. Off only in tests that do not test durability.
    pub sync: bool,
    /// With fewer free bytes on its file system, messages of clients are refused. 0 is no limit.
    pub min_free_disk: u64,
}

impl SqliteOptions {
    /// Options for a durable store at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), readers: 2, sync: true, min_free_disk: 0 }
    }
}

/// Why a store cannot be opened. Each message is one sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another a2ad has it open.
    #[error("the store {} is in use by another a2ad ({holder}); stop that one or choose another file with --store", path.display())]
    InUse {
        /// The database file.
        path: PathBuf,
        /// That process.
        holder: Box<LockHolder>,
    },
    /// A program that is not a2ad, or did not describe itself, has locked it.
    #[error("the store {} is locked by {}; stop that process or choose another file with --store", path.display(), described(process.as_deref()))]
    Locked {
        /// The file.
        path: PathBuf,
        /// That process, where it is known.
        process: Option<Box<Process>>,
    },
    /// A later version of a2ad has migrated the store.
    #[error("the store {} has schema {found}, this a2ad knows {known}; use the newer a2ad that wrote it", path.display())]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Schema version of the store.
        found: i64,
        /// Newest schema version this a2ad supports.
        known: i64,
    },
    /// The file has several names, so that two processes could each use another write-ahead log for it.
    #[error("the store {} has {links} names (hard links); remove the others or choose another file with --store", path.display())]
    Linked {
        /// The database file.
        path: PathBuf,
        /// How many names it has.
        links: u64,
    },
    /// A SQLite file of another program. It is left as it was.
    #[error("the file {} is a database of another program; choose another file with --store", path.display())]
    Foreign {
        /// The database file.
        path: PathBuf,
    },
    /// The file cannot be read or written, or is damaged.
    #[error("the store {} cannot be opened: {reason}", path.display())]
    Unusable {
        /// The database file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
}

fn described(process: Option<&Process>) -> String {
    process.map_or_else(|| "another program".to_owned(), Process::to_string)
}

impl OpenError {
    /// The error of the database, for the operator.
    pub(crate) fn of_database(path: &StorePath, error: &rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        if matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) {
            return instance::locked(path);
        }
        let named = path.named.display();
        let reason = if code == Some(ErrorCode::NotADatabase) && is_no_store(path) {
            NOT_A_STORE.into()
        } else if is_corrupt(error) {
            format!("{error}; the store is damaged: run a2ad check --store {named}, restore a backup")
        } else if code == Some(ErrorCode::DiskFull) {
            format!("{error}; free at least a few megabytes there and start again: nothing is lost")
        } else if let Some(reason) = denied(path, code) {
            format!("{error}; {reason}")
        } else {
            error.to_string()
        };
        Self::Unusable { path: path.named.clone(), reason }
    }
}

/// What is said about a file that was named by mistake.
pub(crate) const NOT_A_STORE: &str =
    "it is not a store, and not a database at all; choose another file with --store";

/// Whether a file has never been a store: it does not begin as databases do, is no whole number of their pages, and has no
/// folder with keys beside it. A store whose first page is damaged has the others.
pub(crate) fn is_no_store(path: &StorePath) -> bool {
    const BEGINNING: &[u8] = b"SQLite format 3\0";
    const SMALLEST_PAGE: u64 = 512;
    let mut beginning = Vec::new();
    let read = std::fs::File::open(&path.real)
        .and_then(|file| file.take(BEGINNING.len() as u64).read_to_end(&mut beginning));
    let is_other = read.is_ok() && !beginning.is_empty() && beginning != BEGINNING;
    let has_pages = path.database_length().is_multiple_of(SMALLEST_PAGE);
    is_other && !has_pages && !path.beside(".keys").exists()
}

/// Whether the database cannot be read because of what is in its file.
pub(crate) fn is_corrupt(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// What to do where the user of this process lacks permissions.
pub(crate) fn denied(path: &StorePath, code: Option<ErrorCode>) -> Option<String> {
    let lacks_permission =
        matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied));
    lacks_permission.then(|| {
        format!(
            "run as the user that owns the file and can write to its directory, or copy it together with {} to a \
             directory of yours",
            path.log().display()
        )
    })
}

impl Sqlite {
    /// Opens or creates the store. Work that an earlier process held becomes due again.
    pub fn open(options: &SqliteOptions, feed: Feed, clock: &Clock) -> Result<Self, OpenError> {
        let store_path = StorePath::of(&options.path);
        // Declared first, so that it is released after every connection.
        let lock = Arc::new(InstanceLock::acquire(&store_path, Access::Write, InstanceState::Starting)?);
        let probed = probe::check_openable(&store_path)?;
        let path = &store_path.real;
        let unusable = |error: rusqlite::Error| OpenError::of_database(&store_path, &error);
        let damaged = |reason| OpenError::Unusable { path: options.path.clone(), reason };
        let mut connection = connect(path, options.sync).map_err(unusable)?;
        drop(probed);
        make_room(&connection, &store_path).map_err(unusable)?;
        migrations::run(&mut connection).map_err(unusable)?;
        let boot = begin_boot(&mut connection, clock.now().as_millis()).map_err(unusable)?;
        if !boot.clean {
            check_newest_logs(&connection)
                .map_err(unusable)?
                .map_or(Ok(()), |reason| Err(damaged(reason)))?;
        }
        if boot.recovered > 0 {
            tracing::info!(
                tasks = boot.recovered,
                "the previous process left unfinished tasks; they are due again"
            );
        }
        let agent_switches = agent_switches::list(&connection).map_err(unusable)?;
        let metrics = Arc::new(StoreMetrics::default());
        metrics.crashed_runs.add(boot.recovered as u64);
        let scopes = ScopeCache::default();
        let readers = ReaderPool::start(path, options.readers).map_err(unusable)?;
        let checkpoints = connect(path, options.sync).map_err(unusable)?;
        let ids = Ids::new(boot.id_key);
        let keys = KeyIndex::load(&connection).map_err(unusable)?;
        let free_space = FreeSpace::new(path.clone(), options.min_free_disk);
        let low_space = free_space.low();
        let cache = WriterCache {
            boot: boot.number,
            scopes: Scopes::load(&connection, scopes.clone()).map_err(unusable)?,
            keys,
            counts: Counts::load(&connection, Arc::clone(&metrics)).map_err(unusable)?,
            usage: Usage::default(),
            low_space: free_space.low(),
            grown: Vec::new(),
            webhooks_due: false,
        };
        let (found, damage) = watch::channel(None);
        let checked = (!boot.clean).then(|| readers::connect(path)).transpose().map_err(unusable)?;
        let integrity_checker = checked.map(|connection| IntegrityChecker::start(connection, found));
        let folding = (readers::connect(path).map_err(unusable)?, ids.clone());
        let files =
            StoreFiles::of(&store_path, lock.database()).map_err(|error| damaged(error.to_string()))?;
        let watched = Watched { files, free_space };
        let deliveries = Arc::new(Notify::new());
        let published = Published { feed, deliveries: Arc::clone(&deliveries) };
        let writer =
            Writer::start(connection, cache, published, checkpoints, folding, watched, Arc::clone(&metrics));
        Ok(Self {
            readers: Arc::new(readers),
            writer,
            scopes,
            low_space,
            ids,
            seal_key: boot.seal_key,
            agent_switches,
            deliveries,
            metrics,
            path: store_path,
            damage,
            _integrity_checker: integrity_checker,
            lock,
        })
    }
}

/// Opens a read-write connection to an existing file.
fn connect(path: &Path, sync: bool) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // Must precede the first table. A page holds about six short tasks' segments: fewer pages to write for each
    // commit.
    connection.pragma_update(None, "page_size", 8_192)?;
    // Must precede the first table: allows releasing free pages later without rewriting the file.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    use_wal(&connection)?;
    connection.pragma_update(None, "synchronous", if sync { "FULL" } else { "OFF" })?;
    connection.pragma_update(None, "foreign_keys", "OFF")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    remove_log_on_close(&connection, false)?;
    connection.pragma_update(None, "cache_size", -8_192)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Where little space is left, copies the log into the database and empties it, if there is space for that: often the
/// database has most of the pages already, while every commit of this start would make the log longer.
fn make_room(connection: &Connection, path: &StorePath) -> rusqlite::Result<()> {
    let is_scarce = free_space::free_space(&path.real).is_some_and(|free| free < free_space::LITTLE);
    if !is_scarce || path.log_length() == 0 || !free_space::log_fits(connection)? {
        return Ok(());
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Sets whether the last connection copies the log into the database and removes it when it is closed. Only a clean stop
/// does so: after a failure, another file may have the name of the log.
pub(crate) fn remove_log_on_close(connection: &Connection, remove: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !remove).map(drop)
}

/// Switches to the write-ahead log. The statement returns the mode in effect, and not every failure to change it is
/// reported as an error; a failed sync is, but only when the statement has run to its end.
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
    let text = format!("journal mode is {mode:?} and cannot be changed to \"wal\"");
    Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR), Some(text)))
}

/// The start of this process's use of the store.
struct Boot {
    number: i64,
    /// The previous process shut down cleanly.
    clean: bool,
    id_key: [u8; 16],
    seal_key: [u8; 32],
    /// Tasks that an earlier boot held and that are due again.
    recovered: usize,
}

/// Increments the boot number, creates the keys of a new store, and voids the leases of earlier boots: holding the
/// instance lock proves that none of their processes is alive.
fn begin_boot(connection: &mut Connection, now: i64) -> rusqlite::Result<Boot> {
    let tx = connection.transaction()?;
    let boot = 1 + meta(&tx, "boot")?.unwrap_or(0);
    set_meta(&tx, "boot", boot)?;
    let clean = boot == 1 || meta(&tx, "clean")? == Some(1);
    set_meta(&tx, "clean", 0)?;
    let id_key = key(&tx, "id_key")?;
    let seal_key = key(&tx, "seal_key")?;
    // Retry at once after the first crash, then with exponential backoff and jitter: a task that crashes its process
    // does not do so again immediately, nor together with every other task that was running.
    let recovered = tx.execute(
        "UPDATE tasks SET boot = 0, deaths = deaths + 1, crashes = crashes + 1, probation = iif(probation > 0, 2, 0),
             next_run_at = ?1 + iif(deaths = 0, 0, abs(random() % (1 + min(100000, 1000 << min(deaths - 1, 7)))))
         WHERE boot > 0",
        params![now],
    )?;
    tx.commit()?;
    Ok(Boot { number: boot, clean, id_key, seal_key, recovered })
}

/// Checks the newest tasks after an unclean shutdown: each log must end at its row's `last_seq`.
fn check_newest_logs(connection: &Connection) -> rusqlite::Result<Option<String>> {
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
    Ok(torn
        .map(|n| format!("the log of task {n} ends before the last entry its row records; restore a backup")))
}

/// Reads an integer from `meta`.
pub(crate) fn meta(connection: &Connection, key: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    statement.query_row(params![key], |row| row.get(0)).optional()
}

/// Stores an integer in `meta`.
pub(crate) fn set_meta(connection: &Connection, key: &str, value: i64) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?;
    statement.execute(params![key, value]).map(drop)
}

/// Reads a random key from `meta`; creates it on first use.
fn key<const N: usize>(connection: &Connection, name: &str) -> rusqlite::Result<[u8; N]> {
    let mut fresh = [0; N];
    getrandom::fill(&mut fresh).expect("the operating system provides randomness");
    connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?1, ?2)", params![name, fresh])?;
    connection.query_row("SELECT value FROM meta WHERE key = ?1", params![name], |row| row.get(0))
}
