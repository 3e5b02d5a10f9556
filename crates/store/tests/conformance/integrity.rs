//! The integrity check after an unclean stop runs beside writes.

use std::{fs, time::Duration};

use engine::{Store, log::Log};

use super::{
    samples::{accepted, artifact},
    test_database::{Sqlite, TestDatabase as _},
};

/// Makes the store large, and its last stop an unclean one.
fn fill(database: &Sqlite) {
    let fill = "PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF;
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 300000)
        INSERT INTO saved (n, attempt, bytes) SELECT n + 1000000, 1, zeroblob(100) FROM numbers;
        UPDATE meta SET value = 0 WHERE key = 'clean';
        PRAGMA wal_checkpoint(TRUNCATE)";
    database.raw_connection().execute_batch(fill).unwrap();
}

/// Writes an open task: no doc is made of it, so the check is the only long reader.
async fn write(store: &dyn Store) {
    let log = Log::pack([artifact(&"x".repeat(256 << 10))]);
    accepted(store, |task| task.log = log).await;
}

/// The bound is 24 MiB and what is written until the log is reset; 120 MiB are written.
const MAX_LOG: u64 = 64 << 20;
/// Beside other tests the thread that resets the log may get too little time. A check that prevents it does so always.
const TRIES: usize = 5;

#[tokio::test]
async fn log_stays_short_during_an_integrity_check() {
    let mut lengths = Vec::new();
    while lengths.len() < TRIES {
        match longest_log().await {
            0..MAX_LOG => return,
            longest => lengths.push(longest),
        }
    }
    panic!("{lengths:?}");
}

/// The longest log while a store is written and checked.
async fn longest_log() -> u64 {
    let database = Sqlite::new();
    drop(database.open());
    fill(&database);
    let store = database.open();
    let wal = database.path().with_extension("db-wal");
    let mut longest = 0;
    for _ in 0..480 {
        write(&*store).await;
        longest = longest.max(fs::metadata(&wal).map_or(0, |file| file.len()));
    }
    let damage = tokio::time::timeout(Duration::from_millis(10), store.damaged()).await;
    assert!(damage.is_err(), "{damage:?}");
    longest
}
