//! A snapshot is the task as its log tells it, however much of that a store has folded beforehand.

use engine::{
    Clock,
    log::Log,
    store::{Advance, Snapshot, Step},
    task::{Names, fold},
};
use protocol::{Task, TaskState};

use super::{
    bench::Bench,
    samples::{accepted, advance, artifact, asked, asks, at, found, log, says, status, step},
};

on_every_database![a_snapshot_adds_up_to_the_log, a_snapshot_says_as_much_as_its_row];

/// The task by its log alone.
fn by_log(
    store: &dyn engine::Store,
    snapshot: &Snapshot,
    log: &[std::sync::Arc<engine::log::Entry>],
) -> Task {
    // The sample events name their own task; a fold takes its names from the row.
    let mut task = fold::begin(&Names::of(&store.ids(), &snapshot.row));
    for entry in log {
        fold::apply(&mut task, entry).unwrap();
    }
    task
}

async fn a_snapshot_adds_up_to_the_log(bench: &dyn Bench) {
    let mut store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    let mut fence = 1;
    // Long enough for any store to fold some of it, on the way, when it rests and over a restart.
    for turn in 0..5 {
        for _ in 0..70 {
            let events = Log::pack([artifact("chunk"), status(TaskState::Working, "progress")]);
            advance(&*store, Advance { log: events, ..step(no, Step::Report { fence }) }).await.unwrap();
            let snapshot = found(&*store, no).await;
            let whole = by_log(&*store, &snapshot, &log(&*store, no).await);
            assert_eq!(fold::snapshot(&store.ids(), &snapshot).unwrap(), whole, "turn {turn}");
        }
        advance(&*store, says(no, Step::Pause { fence }, TaskState::InputRequired, "which?")).await.unwrap();
        if turn % 2 == 0 {
            store = bench.reopen(store, &Clock::manual(at(0)));
        }
        let events = Log::pack([asked(TaskState::Working, "that one")]);
        let status = Some((TaskState::Working, at(0)));
        let resumed = Advance { log: events, status, ..step(no, Step::Resume(asks(fence))) };
        let resumed = advance(&*store, resumed).await.unwrap();
        fence = resumed.fence;
    }
    let snapshot = found(&*store, no).await;
    let task = fold::snapshot(&store.ids(), &snapshot).unwrap();
    assert_eq!((task.artifacts[0].parts.len(), task.history.len()), (350, 11));
}

async fn a_snapshot_says_as_much_as_its_row(bench: &dyn Bench) {
    let store = bench.open();
    for _ in 0..20 {
        let no = accepted(&*store, |_| {}).await;
        advance(&*store, says(no, Step::Finish { fence: 1 }, TaskState::Completed, "done")).await.unwrap();
        // The task is folded about now, beside the reads.
        for _ in 0..10 {
            let snapshot = found(&*store, no).await;
            let task = fold::snapshot(&store.ids(), &snapshot).unwrap();
            assert_eq!((task.status.state, snapshot.row.last_seq), (TaskState::Completed, 3));
            assert_eq!(task.history.len(), 2);
        }
    }
}
