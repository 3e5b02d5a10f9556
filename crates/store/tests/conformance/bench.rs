//! What a database brings along to be tested.

use std::{any::Any, path::PathBuf, sync::Arc};

use a2ad_store::Options;
use engine::{Clock, Feed, Store};
use rusqlite::Connection;
use tempfile::TempDir;

use super::samples::at;

/// A place for one store, empty at first and gone with the bench.
pub(crate) trait Bench {
    /// Opens the store; it publishes to the feed, and what a dead process held is due by the clock.
    fn open_with(&self, feed: Feed, clock: &Clock) -> Arc<dyn Store>;

    /// Keeps the store from writing until the result is dropped; what is handed over meanwhile waits together.
    fn stall(&self) -> Box<dyn Any>;

    /// From now on a change that saves something fails half-way, as on a broken disk.
    fn spoil(&self);

    /// Undoes [`Self::spoil`].
    fn mend(&self);

    /// Opens the store for a test that needs neither feed nor clock.
    fn open(&self) -> Arc<dyn Store> {
        self.open_with(Feed::default(), &Clock::manual(at(0)))
    }

    /// What the next process finds.
    fn reopen(&self, store: Arc<dyn Store>, clock: &Clock) -> Arc<dyn Store> {
        assert_eq!(Arc::strong_count(&store), 1, "a store is closed when its last user lets go of it");
        drop(store);
        self.open_with(Feed::default(), clock)
    }
}

/// A SQLite file in a folder of its own.
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

    pub(crate) fn options(&self) -> Options {
        Options { sync: false, ..Options::at(self.path()) }
    }

    /// A way into the file past the store.
    pub(crate) fn back_door(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        connection
    }
}

impl Bench for Sqlite {
    fn open_with(&self, feed: Feed, clock: &Clock) -> Arc<dyn Store> {
        Arc::new(a2ad_store::Sqlite::open(&self.options(), feed, clock).unwrap())
    }

    fn stall(&self) -> Box<dyn Any> {
        let connection = self.back_door();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Box::new(connection)
    }

    fn spoil(&self) {
        let spoiled =
            "CREATE TRIGGER spoiled BEFORE INSERT ON saved BEGIN SELECT raise(ABORT, 'spoiled'); END";
        self.back_door().execute_batch(spoiled).unwrap();
    }

    fn mend(&self) {
        self.back_door().execute_batch("DROP TRIGGER spoiled").unwrap();
    }
}
