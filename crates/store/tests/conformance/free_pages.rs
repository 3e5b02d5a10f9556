//! Space of purged tasks is returned to the file system, and a disk error meanwhile stops the store.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    time::Duration,
};

use engine::{Store, ids::TaskNo, log::Log, store::WorkState};
use protocol::TaskState;

use super::{
    samples::{accepted, at, ended, log_texts, lookup, scope, tag, user_message},
    test_database::{Sqlite, TestDatabase as _},
};

const PAGE: u64 = 8_192;
/// Number of tasks, of sixteen pages each.
const TASKS: usize = 48;

/// Finished tasks with long logs.
async fn fill(store: &dyn Store) -> Vec<TaskNo> {
    let text = "word ".repeat(16 * 8_192 / 5);
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        let finished = |task: &mut engine::store::Accept| {
            (task.state, task.work) = (TaskState::Completed, WorkState::Idle);
            task.log = Log::pack([user_message(TaskState::Completed, &text)]);
        };
        tasks.push(accepted(store, finished).await);
    }
    tasks
}

async fn purge_all(store: &dyn Store, tasks: &[TaskNo]) {
    let mut seen = Vec::new();
    for task in tasks {
        seen.push(ended(store, *task).await);
    }
    assert_eq!(store.purge(seen, at(0)).await.unwrap(), tasks.len());
}

/// Waits until the file has at most `most` bytes; under load if `busy` is given, else idle.
async fn shrinks_to(database: &Sqlite, most: u64, busy: Option<&dyn Store>) {
    let small = async {
        while fs::metadata(database.path()).unwrap().len() > most {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if let Some(store) = busy {
                accepted(store, |_| {}).await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), small).await.expect("the file shrinks");
}

/// An open store most of whose pages are free, and a task that was kept.
async fn mostly_free(database: &Sqlite) -> (std::sync::Arc<dyn Store>, TaskNo) {
    let store = database.open();
    let purged = fill(&*store).await;
    let kept = accepted(&*store, |_| {}).await;
    drop(store);
    assert!(fs::metadata(database.path()).unwrap().len() > 16 * PAGE * TASKS as u64);
    let store = database.open();
    purge_all(&*store, &purged).await;
    for task in purged {
        assert!(store.find(&scope(), lookup(&*store, task, tag(task))).await.unwrap().is_none());
    }
    (store, kept)
}

/// Pages are released until at most a quarter of the file or 256 pages are free.
const SHRUNK: u64 = 400 * PAGE;

#[tokio::test]
async fn idle_store_releases_its_free_pages() {
    let database = Sqlite::new();
    let (store, kept) = mostly_free(&database).await;
    shrinks_to(&database, SHRUNK, None).await;
    assert_eq!(log_texts(&*store, kept).await, ["first", "second"]);
}

#[tokio::test]
async fn busy_store_releases_its_free_pages() {
    let database = Sqlite::new();
    let (store, kept) = mostly_free(&database).await;
    let full = fs::metadata(database.path()).unwrap().len();
    shrinks_to(&database, full - 64 * PAGE, Some(&*store)).await;
    assert_eq!(log_texts(&*store, kept).await, ["first", "second"]);
}

#[tokio::test]
async fn failure_to_release_pages_stops_the_writer() {
    let database = Sqlite::new();
    drop(mostly_free(&database).await);
    // The second page of the file is the pointer map of the pages after it, which is needed to move them.
    File::options().write(true).open(database.path()).unwrap().write_all_at(&[0xff; 8_192], PAGE).unwrap();
    let store = database.open();
    let failed = tokio::time::timeout(Duration::from_secs(60), store.failed()).await;
    assert!(!failed.expect("the store reports the failure").is_empty());
    assert!(store.reserve(1).await.is_err(), "the store does not write again");
}
