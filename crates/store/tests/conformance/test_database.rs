//! What a database provides to be tested.

use std::{any::Any, path::PathBuf, sync::Arc};

use a2ad_store::SqliteOptions;
use engine::{Clock, Feed, Store};
use rusqlite::Connection;
use tempfile::TempDir;

use super::samples::at;

/// One database, empty at first and deleted on drop.
pub(crate) trait TestDatabase {
    /// Opens the store. It publishes to `feed`, and work held by a dead process is due by `clock`.
    fn open_with(&self, feed: Feed, clock: &Clock) -> Arc<dyn Store>;

    /// Blocks the store's writes until the result is dropped; changes committed meanwhile form one batch.
    fn block_writes(&self) -> Box<dyn Any>;

    /// Makes every change that saves a checkpoint fail half-way, as on a disk error.
    fn fail_saves(&self);

    /// Undoes [`Self::fail_saves`].
    fn restore_saves(&self);

    /// Opens the store for a test that needs neither feed nor clock.
    fn open(&self) -> Arc<dyn Store> {
        self.open_with(Feed::default(), &Clock::manual(at(0)))
    }

    /// Closes the store and opens it as the next process would.
    fn reopen(&self, store: Arc<dyn Store>, clock: &Clock) -> Arc<dyn Store> {
        assert_eq!(Arc::strong_count(&store), 1, "other references would keep the store open");
        drop(store);
        self.open_with(Feed::default(), clock)
    }
}

/// A SQLite file in a temporary directory.
pub(crate) struct Sqlite {
    folder: TempDir,
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("a2ad.db")
    }

    pub(crate) fn options(&self) -> SqliteOptions {
        SqliteOptions { sync: false, ..SqliteOptions::at(self.path()) }
    }

    /// A connection to the file that bypasses the store.
    pub(crate) fn raw_connection(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        connection
    }
}

impl TestDatabase for Sqlite {
    fn open_with(&self, feed: Feed, clock: &Clock) -> Arc<dyn Store> {
        Arc::new(a2ad_store::Sqlite::open(&self.options(), feed, clock).unwrap())
    }

    fn block_writes(&self) -> Box<dyn Any> {
        let connection = self.raw_connection();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Box::new(connection)
    }

    fn fail_saves(&self) {
        let spoiled =
            "CREATE TRIGGER spoiled BEFORE INSERT ON saved BEGIN SELECT raise(ABORT, 'spoiled'); END";
        self.raw_connection().execute_batch(spoiled).unwrap();
    }

    fn restore_saves(&self) {
        self.raw_connection().execute_batch("DROP TRIGGER spoiled").unwrap();
    }
}
