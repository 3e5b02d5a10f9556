//! Purging large tasks: in slices, invisible from the first one on, and finished after a crash.

use engine::{
    Clock, Store,
    ids::TaskNo,
    log::Log,
    store::{Advance, JournalChange, JournalStep, Step, StepOwner},
};
use futures_util::FutureExt as _;
use protocol::TaskState;

use super::{
    samples::{accepted, advance, artifact, at, ended, lookup, scope, step, tag, with_status},
    test_database::{Sqlite, TestDatabase as _},
};

const MIB: i64 = 1 << 20;

/// A finished task whose log has five segments of nearly 1 MiB each.
async fn large_task(store: &dyn Store) -> TaskNo {
    let no = accepted(store, |_| {}).await;
    let text = "x".repeat((1 << 20) - 1_000);
    for _ in 0..5 {
        let log = Log::pack([artifact(&text)]);
        advance(store, Advance { log, ..step(no, Step::Report { fence: 1 }) }).await.unwrap();
    }
    let end = with_status(no, Step::Finish { fence: 1 }, TaskState::Completed, "done");
    advance(store, end).await.unwrap();
    no
}

/// A finished task with a journal of 16 MiB: a few large steps and many small ones, of two turns.
async fn task_with_large_journal(store: &dyn Store) -> TaskNo {
    let no = accepted(store, |_| {}).await;
    let sizes = [(1, 14, 1 << 20), (3, 4_000, 512)];
    for (turn, count, bytes) in sizes {
        for part in 0..14 {
            let steps = (0..count).filter(|index| index % 14 == part).map(|index| JournalStep {
                owner: StepOwner::Turn(turn),
                id: format!("step-{index}"),
                output: Some(vec![7; bytes].into()),
            });
            let journal = JournalChange::Write(steps.collect());
            advance(store, Advance { journal, ..step(no, Step::Report { fence: 1 }) }).await.unwrap();
        }
    }
    let end = with_status(no, Step::Finish { fence: 1 }, TaskState::Completed, "done");
    advance(store, end).await.unwrap();
    no
}

fn count(database: &Sqlite, sql: &str) -> i64 {
    database.raw_connection().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Bytes of all logs and journals.
const BYTES: &str = "SELECT (SELECT coalesce(sum(length(bytes)), 0) FROM segments)
     + (SELECT coalesce(sum(length(output)), 0) FROM journal)";
const MARKERS: &str = "SELECT count(*) FROM meta WHERE key LIKE 'purging/%'";

/// Starts to purge these tasks and stops after `slices` commits, or at the end. Returns how many bytes of logs and journals
/// each commit deleted, and the result if the purge has ended.
async fn purge(
    database: &Sqlite,
    store: &dyn Store,
    tasks: &[TaskNo],
    slices: usize,
) -> (Vec<i64>, Option<usize>) {
    let mut seen = Vec::new();
    for task in tasks {
        seen.push(ended(store, *task).await);
    }
    let mut purge = store.purge(seen, at(7));
    let connection = database.raw_connection();
    let mut left = count(database, BYTES);
    let mut deleted = Vec::new();
    let result = loop {
        // The purge queues its next commit when the result of the last one is polled, and no commit happens while it is
        // polled. So between two looks at them there is at most one.
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let now = connection.query_row(BYTES, [], |row| row.get(0)).unwrap();
        if now < left {
            deleted.push(left - now);
            left = now;
        }
        let result = if deleted.len() < slices { (&mut purge).now_or_never() } else { None };
        connection.execute_batch("ROLLBACK").unwrap();
        if result.is_some() || deleted.len() >= slices {
            break result;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    (deleted, result.map(Result::unwrap))
}

#[tokio::test]
async fn commits_of_a_purge_are_bounded_in_bytes() {
    let database = Sqlite::new();
    let store = database.open();
    let tasks = [large_task(&*store).await, large_task(&*store).await, large_task(&*store).await];
    let small = accepted(&*store, |_| {}).await;
    assert!(count(&database, BYTES) > 14 * MIB);
    let (deleted, purged) = purge(&database, &*store, &tasks, usize::MAX).await;
    assert_eq!(purged, Some(3));
    assert!(deleted.len() >= 7, "{deleted:?}");
    assert!(deleted.iter().all(|bytes| *bytes <= 2 * MIB), "{deleted:?}");
    assert_eq!(count(&database, MARKERS), 0);
    let rest = format!("SELECT count(*) FROM segments WHERE place >> 24 <> {}", small.0);
    assert_eq!(count(&database, &rest), 0);
    assert_eq!(count(&database, "SELECT (SELECT count(*) FROM docs) + (SELECT count(*) FROM saved)"), 0);
}

#[tokio::test]
async fn interrupted_purge_is_finished_after_a_restart() {
    let database = Sqlite::new();
    let store = database.open();
    let no = large_task(&*store).await;
    let next = large_task(&*store).await;
    let (deleted, purged) = purge(&database, &*store, &[no, next], 1).await;
    assert_eq!((deleted.len(), purged), (1, None));
    // The task is gone for clients although most of its rows remain. The next one is still there.
    assert!(store.find(&scope(), lookup(&*store, no, tag(no))).await.unwrap().is_none());
    assert!(store.find(&scope(), lookup(&*store, next, tag(next))).await.unwrap().is_some());
    assert_eq!(count(&database, MARKERS), 1);

    let store = database.reopen(store, &Clock::manual(at(0)));
    assert!(store.find(&scope(), lookup(&*store, no, tag(no))).await.unwrap().is_none());
    let rows = format!("SELECT count(*) FROM segments WHERE place >> 24 = {}", no.0);
    assert!(count(&database, &rows) >= 3);
    // Too early for its tombstone, but the rest of its rows is deleted.
    assert_eq!(store.drop_purged(at(7), 100).await.unwrap(), 0);
    assert_eq!((count(&database, &rows), count(&database, MARKERS)), (0, 0));
    assert_eq!(store.drop_purged(at(8), 100).await.unwrap(), 1);
    assert!(store.find(&scope(), lookup(&*store, next, tag(next))).await.unwrap().is_some());
}

#[tokio::test]
async fn journal_is_purged_in_slices_too() {
    let database = Sqlite::new();
    let store = database.open();
    let no = task_with_large_journal(&*store).await;
    let small = accepted(&*store, |task| {
        let output = Some(vec![1].into());
        let step = JournalStep { owner: StepOwner::Turn(1), id: "step-0".into(), output };
        task.journal = JournalChange::Write(vec![step]);
    })
    .await;
    assert!(count(&database, BYTES) > 15 * MIB);
    let (deleted, purged) = purge(&database, &*store, &[no], 2).await;
    assert_eq!((deleted.len(), purged), (2, None));
    assert!(store.find(&scope(), lookup(&*store, no, tag(no))).await.unwrap().is_none());
    assert_eq!(count(&database, MARKERS), 1);

    // The next process deletes the rest, in slices as well.
    let steps = format!("SELECT count(*) FROM journal WHERE n = {}", no.0);
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert!(count(&database, &steps) > 100);
    let connection = database.raw_connection();
    let mut rest = store.drop_purged(at(7), 100);
    let (mut left, mut slices) = (count(&database, BYTES), 0);
    let dropped = loop {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let now = connection.query_row(BYTES, [], |row| row.get::<_, i64>(0)).unwrap();
        assert!(left - now <= 2 * MIB, "{left}, {now}");
        (slices, left) = (slices + usize::from(now < left), now);
        let result = (&mut rest).now_or_never();
        connection.execute_batch("ROLLBACK").unwrap();
        if let Some(result) = result {
            break result.unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    assert_eq!((count(&database, &steps), count(&database, MARKERS), dropped), (0, 0, 0));
    assert!(slices >= 6, "{slices}");
    assert_eq!(store.drop_purged(at(8), 100).await.unwrap(), 1);
    assert_eq!(store.work(small).await.unwrap().unwrap().journal.len(), 1);
}

#[tokio::test]
async fn commits_of_a_purge_of_journals_are_bounded_in_bytes() {
    let database = Sqlite::new();
    let store = database.open();
    let tasks = [task_with_large_journal(&*store).await, large_task(&*store).await];
    let (deleted, purged) = purge(&database, &*store, &tasks, usize::MAX).await;
    assert_eq!(purged, Some(2));
    assert!(deleted.len() >= 10, "{deleted:?}");
    assert!(deleted.iter().all(|bytes| *bytes <= 2 * MIB), "{deleted:?}");
    assert_eq!((count(&database, BYTES), count(&database, "SELECT count(*) FROM journal")), (0, 0));
    assert_eq!(count(&database, MARKERS), 0);
}
