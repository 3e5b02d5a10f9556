//! A snapshot equals the fold of the whole log, however much of it the store has folded beforehand.

use engine::{
    Clock, MemoryBudget, Store,
    ids::TaskNo,
    log::Log,
    store::{Advance, Snapshot, Step, StoreError, View},
    task::{PublicIds, fold},
};
use protocol::{Task, TaskState};

use super::{
    samples::{
        accepted, advance, artifact, at, foreign_scope, found, interrupted, log, lookup, scope, status, step,
        tag, user_message, with_status,
    },
    test_database::TestDatabase,
};

on_every_database![
    snapshot_equals_the_fold_of_the_log,
    snapshot_is_consistent_with_its_row,
    view_equals_the_trimmed_task,
    view_reads_only_what_it_shows,
    row_is_read_without_its_log,
];

/// The task folded from its log alone.
fn by_log(
    store: &dyn engine::Store,
    snapshot: &Snapshot,
    log: &[std::sync::Arc<engine::log::Entry>],
) -> Task {
    // The sample events contain their own task id; a fold takes ids from the row.
    let mut task = fold::begin(&PublicIds::of(&store.ids(), &snapshot.row));
    for entry in log {
        fold::apply(&mut task, entry).unwrap();
    }
    task
}

async fn snapshot_equals_the_fold_of_the_log(database: &dyn TestDatabase) {
    let mut store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let mut fence = 1;
    // Long enough for any store to fold some of it: while running, when settled, and over a restart.
    for turn in 0..5 {
        for _ in 0..70 {
            let events = Log::pack([artifact("chunk"), status(TaskState::Working, "progress")]);
            advance(&*store, Advance { log: events, ..step(no, Step::Report { fence }) }).await.unwrap();
            let snapshot = found(&*store, no).await;
            let whole = by_log(&*store, &snapshot, &log(&*store, no).await);
            assert_eq!(fold::snapshot(&store.ids(), &snapshot).unwrap(), whole, "turn {turn}");
        }
        advance(&*store, with_status(no, Step::Pause { fence }, TaskState::InputRequired, "which?"))
            .await
            .unwrap();
        if turn % 2 == 0 {
            store = database.reopen(store, &Clock::manual(at(0)));
        }
        let events = Log::pack([user_message(TaskState::Working, "that one")]);
        let status = Some((TaskState::Working, at(0)));
        let resumed = Advance { log: events, status, ..step(no, Step::Resume(interrupted(fence))) };
        let resumed = advance(&*store, resumed).await.unwrap();
        fence = resumed.fence;
    }
    let snapshot = found(&*store, no).await;
    let task = fold::snapshot(&store.ids(), &snapshot).unwrap();
    assert_eq!((task.artifacts[0].parts.len(), task.history.len()), (350, 11));
}

async fn snapshot_is_consistent_with_its_row(database: &dyn TestDatabase) {
    let store = database.open();
    for _ in 0..20 {
        let no = accepted(&*store, |_| {}).await;
        advance(&*store, with_status(no, Step::Finish { fence: 1 }, TaskState::Completed, "done"))
            .await
            .unwrap();
        // The store folds the task about now, concurrently with the reads.
        for _ in 0..10 {
            let snapshot = found(&*store, no).await;
            let task = fold::snapshot(&store.ids(), &snapshot).unwrap();
            assert_eq!((task.status.state, snapshot.row.last_seq), (TaskState::Completed, 3));
            assert_eq!(task.history.len(), 2);
        }
    }
}

async fn viewed(store: &dyn Store, no: TaskNo, view: View) -> Snapshot {
    store.read(&scope(), lookup(store, no, tag(no)), view).await.unwrap().unwrap()
}

fn trimmed(whole: &Task, history: Option<u32>, artifacts: bool) -> Task {
    let mut task = whole.clone();
    let surplus = history.map_or(0, |length| task.history.len().saturating_sub(length as usize));
    task.history.drain(..surplus);
    if !artifacts {
        task.artifacts.clear();
    }
    task
}

/// Waits until the store has folded everything that it folds of this task.
async fn until_folded(store: &dyn Store, no: TaskNo) -> Snapshot {
    for _ in 0..500 {
        let snapshot = found(store, no).await;
        if snapshot.row.doc == snapshot.row.last_seq {
            return snapshot;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    found(store, no).await
}

async fn view_equals_the_trimmed_task(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let mut fence = 1;
    for turn in 0..4 {
        // Segments that are loaded as a whole and larger ones, with and without a message in them.
        for size in [10, 50 << 10] {
            let text = "x".repeat(size);
            let events = Log::pack([artifact(&text), status(TaskState::Working, &text), artifact("y")]);
            advance(&*store, Advance { log: events, ..step(no, Step::Report { fence }) }).await.unwrap();
        }
        let text = "q".repeat(if turn % 2 == 0 { 10 } else { 20 << 10 });
        let pause = with_status(no, Step::Pause { fence }, TaskState::InputRequired, &text);
        advance(&*store, pause).await.unwrap();
        for is_folded in [false, true] {
            if is_folded {
                until_folded(&*store, no).await;
            }
            let whole = fold::snapshot(&store.ids(), &found(&*store, no).await).unwrap();
            for history in [None, Some(0), Some(1), Some(2), Some(3), Some(100)] {
                for artifacts in [true, false] {
                    let view = View { history, artifacts, memory: None };
                    let read = fold::snapshot(&store.ids(), &viewed(&*store, no, view).await).unwrap();
                    let label = format!("turn {turn}, {history:?}, {artifacts}, folded: {is_folded}");
                    assert!(history.is_none_or(|length| {
                        read.history.len() >= whole.history.len().min(length as usize)
                    }));
                    assert_eq!(
                        trimmed(&read, history, artifacts),
                        trimmed(&whole, history, artifacts),
                        "{label}"
                    );
                }
            }
        }
        let events = Log::pack([user_message(TaskState::Working, &format!("{turn}{text}"))]);
        let status = Some((TaskState::Working, at(0)));
        let resumed = Advance { log: events, status, ..step(no, Step::Resume(interrupted(fence))) };
        fence = advance(&*store, resumed).await.unwrap().fence;
    }
}

async fn view_reads_only_what_it_shows(database: &dyn TestDatabase) {
    let store = database.open();
    let large = "x".repeat(3 << 20);
    // Before and after the store has folded the task: a settled task of this size is folded.
    for settled in [false, true] {
        let no = accepted(&*store, |task| {
            task.log = Log::pack([user_message(TaskState::Submitted, &large), artifact(&large)]);
        })
        .await;
        if settled {
            let finish = with_status(no, Step::Finish { fence: 1 }, TaskState::Completed, "done");
            advance(&*store, finish).await.unwrap();
            let folded = until_folded(&*store, no).await;
            assert_eq!(folded.row.doc, 3, "the doc is stored");
        }
        let budget = MemoryBudget::new(1 << 20);
        let nothing = View { history: Some(0), artifacts: false, memory: Some(budget.begin()) };
        let read = viewed(&*store, no, nothing.clone()).await;
        assert!(read.bytes < 2_000, "{} bytes", read.bytes);
        let task = fold::snapshot(&store.ids(), &read).unwrap();
        assert_eq!((task.history.len(), task.artifacts.len()), (0, 0));
        for shown in [View { history: None, ..nothing.clone() }, View { artifacts: true, ..nothing }] {
            // The message is stored as its text and as its id.
            let without_limit = viewed(&*store, no, View { memory: None, ..shown.clone() }).await;
            let expected = if shown.artifacts { 3 } else { 6 };
            assert_eq!(without_limit.bytes >> 20, expected, "settled: {settled}");
            let read = store.read(&scope(), lookup(&*store, no, tag(no)), shown).await;
            assert!(matches!(read, Err(StoreError::TooLarge(_))), "it does not fit into the reservation");
        }
    }
}

async fn row_is_read_without_its_log(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let id = lookup(&*store, no, tag(no));
    let row = store.row(&scope(), id.clone()).await.unwrap().unwrap();
    let whole = found(&*store, no).await.row;
    assert_eq!((row.no, row.state, row.last_seq, row.size), (no, whole.state, 2, whole.size));
    assert!(store.row(&foreign_scope(), id).await.unwrap().is_none());
}
