//! Crashes, probation and progress: how often processes crashed while they ran a task, and what resets the count.

use std::sync::Arc;

use engine::{
    Clock, Store,
    ids::TaskNo,
    store::{Advance, Step, TaskRow},
};
use protocol::TaskState;

use super::{
    samples::{
        accepted, advance, artifact, at, finished, found, interrupted, report, step, suspects, with_status,
    },
    test_database::TestDatabase,
};

on_every_database![
    crash_on_probation_is_remembered,
    probation_ends_with_every_end_of_the_run,
    probation_ends_with_its_step_and_with_progress,
    claim_without_probation_starts_none,
    holder_ends_its_probation_alone,
    crashes_are_counted_per_turn,
    progress_resets_attempts_and_deaths,
    progress_needs_the_lease,
    suspect_is_no_suspect_after_progress,
];

const CLAIM: Step = Step::Claim { probation: false };
const CLAIM_ON_PROBATION: Step = Step::Claim { probation: true };

fn crash(database: &dyn TestDatabase, store: Arc<dyn Store>) -> Arc<dyn Store> {
    database.reopen(store, &Clock::manual(at(0)))
}

async fn row(store: &dyn Store, no: TaskNo) -> TaskRow {
    found(store, no).await.row
}

/// The same change, with progress.
fn progress(advance: Advance) -> Advance {
    Advance { progress: true, ..advance }
}

/// A task under which two processes crashed, and the third one claimed it on probation with fencing token 3.
async fn on_probation(database: &dyn TestDatabase, tasks: usize) -> (Arc<dyn Store>, Vec<TaskNo>) {
    let mut store = database.open();
    let mut all = Vec::new();
    for _ in 0..tasks {
        all.push(accepted(&*store, |_| {}).await);
    }
    for claim in [CLAIM, CLAIM_ON_PROBATION] {
        store = crash(database, store);
        for no in &all {
            advance(&*store, step(*no, claim)).await.unwrap();
        }
    }
    (store, all)
}

async fn crash_on_probation_is_remembered(database: &dyn TestDatabase) {
    let (store, tasks) = on_probation(database, 1).await;
    let no = tasks[0];
    let now = row(&*store, no).await;
    assert_eq!((now.deaths, now.crashes, now.died_on_probation), (2, 2, false));
    let mut store = crash(database, store);
    let now = row(&*store, no).await;
    assert_eq!((now.deaths, now.crashes, now.died_on_probation), (3, 3, true));
    // The process that claims the task then reads it, and so does the next one after a crash.
    for claim in [CLAIM_ON_PROBATION, CLAIM] {
        advance(&*store, step(no, claim)).await.unwrap();
        assert!(row(&*store, no).await.died_on_probation, "{claim:?}");
        store = crash(database, store);
        assert!(row(&*store, no).await.died_on_probation, "{claim:?}");
    }
}

async fn probation_ends_with_every_end_of_the_run(database: &dyn TestDatabase) {
    let (at, fence) = (at(0), 3);
    let ends = [
        (Step::Retry { fence, at }, TaskState::Working),
        (Step::Release { fence, at }, TaskState::Working),
        (Step::Requeue { fence, at }, TaskState::Working),
        (Step::Pause { fence }, TaskState::InputRequired),
        (Step::Finish { fence }, TaskState::Completed),
    ];
    let (store, tasks) = on_probation(database, ends.len()).await;
    for (no, (end, state)) in tasks.iter().zip(ends) {
        advance(&*store, with_status(*no, end, state, "end")).await.unwrap();
        // The next run is not on probation.
        let next = match state {
            TaskState::InputRequired => {
                with_status(*no, Step::Resume(interrupted(3)), TaskState::Working, "on")
            }
            TaskState::Completed => with_status(*no, Step::Resume(finished(3)), TaskState::Working, "on"),
            _ => step(*no, CLAIM),
        };
        advance(&*store, next).await.unwrap();
    }
    let store = crash(database, store);
    for (no, (end, _)) in tasks.iter().zip(ends) {
        assert!(!row(&*store, *no).await.died_on_probation, "{end:?}");
    }
}

async fn probation_ends_with_its_step_and_with_progress(database: &dyn TestDatabase) {
    let report = |no| step(no, Step::Report { fence: 3 });
    let changes: [fn(TaskNo) -> Advance; 4] = [
        |no| step(no, Step::EndProbation { fence: 3 }),
        |no| progress(step(no, Step::Report { fence: 3 })),
        |no| progress(with_status(no, Step::Report { fence: 3 }, TaskState::Working, "on")),
        |no| progress(step(no, Step::EndProbation { fence: 3 })),
    ];
    let (store, tasks) = on_probation(database, changes.len() + 1).await;
    for (no, change) in tasks.iter().zip(changes) {
        advance(&*store, change(*no)).await.unwrap();
    }
    // A report without progress does not end it.
    let last = tasks[changes.len()];
    advance(&*store, report(last)).await.unwrap();
    advance(&*store, with_status(last, Step::Report { fence: 3 }, TaskState::Working, "on")).await.unwrap();
    advance(&*store, with_status(last, Step::QueueMessage, TaskState::Working, "message")).await.unwrap();
    let store = crash(database, store);
    let expected = [(3, false), (1, false), (1, false), (1, false), (3, true)];
    for (no, expected) in tasks.iter().zip(expected) {
        let now = row(&*store, *no).await;
        assert_eq!((now.deaths, now.died_on_probation), expected, "{no:?}");
        assert_eq!(now.crashes, 3, "{no:?}");
    }
}

async fn claim_without_probation_starts_none(database: &dyn TestDatabase) {
    let mut store = database.open();
    let no = accepted(&*store, |_| {}).await;
    for crashes in 1..5 {
        store = crash(database, store);
        let now = row(&*store, no).await;
        assert_eq!((now.crashes, now.died_on_probation), (crashes, false));
        advance(&*store, step(no, CLAIM)).await.unwrap();
    }
}

async fn holder_ends_its_probation_alone(database: &dyn TestDatabase) {
    let (store, tasks) = on_probation(database, 1).await;
    for fence in [2, 4] {
        advance(&*store, step(tasks[0], Step::EndProbation { fence })).await.unwrap_err();
    }
    let store = crash(database, store);
    assert!(row(&*store, tasks[0]).await.died_on_probation);
    // Nobody holds it now.
    advance(&*store, step(tasks[0], Step::EndProbation { fence: 3 })).await.unwrap_err();
    assert!(row(&*store, tasks[0]).await.died_on_probation);
}

async fn crashes_are_counted_per_turn(database: &dyn TestDatabase) {
    let mut store = database.open();
    let no = accepted(&*store, |_| {}).await;
    for crashes in 1..=3 {
        store = crash(database, store);
        advance(&*store, progress(step(no, CLAIM))).await.unwrap();
        let now = row(&*store, no).await;
        assert_eq!((now.crashes, now.deaths, now.attempt), (crashes, 0, 1), "progress does not reset them");
    }
    // Neither does the next attempt; the next turn does.
    advance(&*store, step(no, Step::Retry { fence: 4, at: at(0) })).await.unwrap();
    advance(&*store, step(no, CLAIM)).await.unwrap();
    advance(&*store, step(no, Step::Release { fence: 5, at: at(0) })).await.unwrap();
    advance(&*store, step(no, CLAIM)).await.unwrap();
    assert_eq!(row(&*store, no).await.crashes, 3);
    advance(&*store, with_status(no, Step::QueueMessage, TaskState::Working, "more")).await.unwrap();
    advance(&*store, step(no, Step::Requeue { fence: 6, at: at(0) })).await.unwrap();
    assert_eq!(row(&*store, no).await.crashes, 0);
    advance(&*store, step(no, CLAIM)).await.unwrap();
    let store = crash(database, store);
    assert_eq!(row(&*store, no).await.crashes, 1);
    advance(&*store, step(no, CLAIM)).await.unwrap();
    let pause = with_status(no, Step::Pause { fence: 8 }, TaskState::InputRequired, "?");
    advance(&*store, pause).await.unwrap();
    assert_eq!(row(&*store, no).await.crashes, 1);
    let resume = with_status(no, Step::Resume(interrupted(8)), TaskState::Working, "!");
    advance(&*store, resume).await.unwrap();
    assert_eq!(row(&*store, no).await.crashes, 0);
}

async fn progress_resets_attempts_and_deaths(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let store = crash(database, store);
    advance(&*store, step(no, CLAIM)).await.unwrap();
    advance(&*store, step(no, Step::Retry { fence: 2, at: at(0) })).await.unwrap();
    let claimed = advance(&*store, step(no, CLAIM)).await.unwrap();
    assert_eq!((claimed.fence, claimed.attempt), (3, 3));
    // A report without progress does not reset anything.
    let log = engine::log::Log::pack([artifact("one")]);
    let change = Advance { log, ..step(no, Step::Report { fence: 3 }) };
    advance(&*store, change.clone()).await.unwrap();
    let now = row(&*store, no).await;
    assert_eq!((now.attempt, now.deaths, now.crashes, now.fence), (3, 1, 1, 3));
    let committed = advance(&*store, progress(change)).await.unwrap();
    assert_eq!((committed.attempt, committed.fence, committed.last_seq), (1, 3, 4));
    let now = row(&*store, no).await;
    assert_eq!((now.attempt, now.deaths, now.crashes, now.fence), (1, 0, 1, 3));
    // The next attempt is the second one again.
    advance(&*store, step(no, Step::Retry { fence: 3, at: at(0) })).await.unwrap();
    assert_eq!(advance(&*store, step(no, CLAIM)).await.unwrap().attempt, 2);
}

async fn progress_needs_the_lease(database: &dyn TestDatabase) {
    let (store, tasks) = on_probation(database, 1).await;
    let stale = progress(step(tasks[0], Step::Report { fence: 2 }));
    advance(&*store, stale).await.unwrap_err();
    advance(&*store, progress(report(tasks[0], &["late"]))).await.unwrap_err();
    let now = row(&*store, tasks[0]).await;
    assert_eq!((now.attempt, now.deaths), (3, 2));
}

async fn suspect_is_no_suspect_after_progress(database: &dyn TestDatabase) {
    let (store, tasks) = on_probation(database, 2).await;
    advance(&*store, progress(step(tasks[0], Step::Report { fence: 3 }))).await.unwrap();
    let store = crash(database, store);
    let due = store.due(at(100_000), 10).await.unwrap();
    assert_eq!((due.tasks.len(), suspects(&due.tasks)), (2, vec![tasks[1]]));
}
