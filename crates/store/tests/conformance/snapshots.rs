//! A snapshot equals the fold of the whole log, however much of it the store has folded beforehand.

use engine::{
    Clock,
    log::Log,
    store::{Advance, Snapshot, Step},
    task::{PublicIds, fold},
};
use protocol::{Task, TaskState};

use super::{
    samples::{
        accepted, advance, artifact, at, found, interrupted, log, status, step, user_message, with_status,
    },
    test_database::TestDatabase,
};

on_every_database![snapshot_equals_the_fold_of_the_log, snapshot_is_consistent_with_its_row];

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
