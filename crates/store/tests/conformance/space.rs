//! The space of forgotten tasks goes back to the file system, and a disk that fails meanwhile stops the store.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    time::Duration,
};

use engine::{Store, ids::TaskNo, log::Log, store::Work};
use protocol::TaskState;

use super::{
    bench::{Bench as _, Sqlite},
    samples::{accepted, asked, at, ended, lookup, scope, tag, told},
};

const PAGE: u64 = 8_192;
/// So many tasks of sixteen pages each.
const TASKS: usize = 48;

/// Finished tasks with long logs.
async fn fill(store: &dyn Store) -> Vec<TaskNo> {
    let word = "word ".repeat(16 * 8_192 / 5);
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        let finished = |task: &mut engine::store::Accept| {
            (task.state, task.work) = (TaskState::Completed, Work::Idle);
            task.log = Log::pack([asked(TaskState::Completed, &word)]);
        };
        tasks.push(accepted(store, finished).await);
    }
    tasks
}

async fn forget(store: &dyn Store, tasks: &[TaskNo]) {
    let mut seen = Vec::new();
    for task in tasks {
        seen.push(ended(store, *task).await);
    }
    assert_eq!(store.purge(seen, at(0)).await.unwrap(), tasks.len());
}

/// Waits until the file is at most so large; with something to write all the while, or nothing.
async fn shrinks_to(bench: &Sqlite, most: u64, busy: Option<&dyn Store>) {
    let small = async {
        while fs::metadata(bench.path()).unwrap().len() > most {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if let Some(store) = busy {
                accepted(store, |_| {}).await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), small).await.expect("the file shrinks");
}

/// A file most of whose pages are free, open; and a task that was left in it.
async fn emptied(bench: &Sqlite) -> (std::sync::Arc<dyn Store>, TaskNo) {
    let store = bench.open();
    let forgotten = fill(&*store).await;
    let kept = accepted(&*store, |_| {}).await;
    drop(store);
    assert!(fs::metadata(bench.path()).unwrap().len() > 16 * PAGE * TASKS as u64);
    let store = bench.open();
    forget(&*store, &forgotten).await;
    for task in forgotten {
        assert!(store.find(&scope(), lookup(&*store, task, tag(task))).await.unwrap().is_none());
    }
    (store, kept)
}

/// What is left is given back until a quarter of the file or 256 pages are free.
const SHRUNK: u64 = 400 * PAGE;

#[tokio::test]
async fn a_quiet_store_gives_its_free_pages_back() {
    let bench = Sqlite::new();
    let (store, kept) = emptied(&bench).await;
    shrinks_to(&bench, SHRUNK, None).await;
    assert_eq!(told(&*store, kept).await, ["first", "second"]);
}

#[tokio::test]
async fn a_store_that_is_never_quiet_gives_its_free_pages_back() {
    let bench = Sqlite::new();
    let (store, kept) = emptied(&bench).await;
    let full = fs::metadata(bench.path()).unwrap().len();
    shrinks_to(&bench, full - 64 * PAGE, Some(&*store)).await;
    assert_eq!(told(&*store, kept).await, ["first", "second"]);
}

#[tokio::test]
async fn a_failure_to_give_pages_back_ends_the_writing() {
    let bench = Sqlite::new();
    drop(emptied(&bench).await);
    // The second page of the file says whose the pages behind it are, which matters when they are moved.
    File::options().write(true).open(bench.path()).unwrap().write_all_at(&[0xff; 8_192], PAGE).unwrap();
    let store = bench.open();
    let failed = tokio::time::timeout(Duration::from_secs(60), store.failed()).await;
    assert!(!failed.expect("the store says that it failed").is_empty());
    assert!(store.reserve(1).await.is_err(), "and never writes again");
}
