//! The journal: the outputs of finished steps of a turn or a task.

use bytes::Bytes;
use engine::{
    Clock, Store,
    ids::TaskNo,
    log::Seq,
    store::{Advance, JournalChange, JournalStep, NotCommitted, Step, StepOwner, WorkState},
};
use protocol::TaskState;

use super::{
    samples::{accepted, advance, at, ended, finished, found, report, save, step, with_status},
    test_database::TestDatabase,
};

on_every_database![
    steps_are_recorded_and_replaced,
    steps_belong_to_their_turn,
    journal_survives_attempts_and_restarts,
    end_of_a_turn_keeps_the_steps_of_the_task,
    journal_is_cleared_with_the_end_of_a_task,
    rejected_change_writes_no_step,
    failed_commit_writes_no_step,
    purge_and_deletion_remove_the_journal,
    journal_of_another_task_is_unchanged,
];

/// A step that has begun or, with an output, finished.
fn journal_step(turn: Seq, id: &str, output: Option<&'static str>) -> JournalStep {
    let output = output.map(|text| Bytes::from_static(text.as_bytes()));
    JournalStep { owner: StepOwner::from_number(turn), id: id.into(), output }
}

fn write(turn: Seq, steps: &[(&str, Option<&'static str>)]) -> JournalChange {
    JournalChange::Write(steps.iter().map(|(id, output)| journal_step(turn, id, *output)).collect())
}

fn with_journal(advance: Advance, journal: JournalChange) -> Advance {
    Advance { journal, ..advance }
}

/// The journal in the order of its turns and step ids.
async fn journal(store: &dyn Store, no: TaskNo) -> Vec<JournalStep> {
    let mut journal = store.work(no).await.unwrap().unwrap().journal;
    journal.sort_unstable_by(|a, b| (a.owner, &a.id).cmp(&(b.owner, &b.id)));
    journal
}

async fn steps_are_recorded_and_replaced(database: &dyn TestDatabase) {
    let store = database.open();
    let none = accepted(&*store, |_| {}).await;
    assert_eq!(journal(&*store, none).await, []);
    let no = accepted(&*store, |task| task.journal = write(1, &[("fetch", Some("page"))])).await;
    assert_eq!(journal(&*store, no).await, [journal_step(1, "fetch", Some("page"))]);
    let change = with_journal(report(no, &["a report"]), write(1, &[("send", None), ("empty", Some(""))]));
    advance(&*store, change).await.unwrap();
    let change = with_journal(step(no, Step::Report { fence: 1 }), write(1, &[("send", Some("ok"))]));
    advance(&*store, change).await.unwrap();
    // A change that writes no step leaves them.
    advance(&*store, report(no, &["another"])).await.unwrap();
    let all = [
        journal_step(1, "empty", Some("")),
        journal_step(1, "fetch", Some("page")),
        journal_step(1, "send", Some("ok")),
    ];
    assert_eq!(journal(&*store, no).await, all);
}

async fn steps_belong_to_their_turn(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| task.journal = write(1, &[("fetch", Some("first"))])).await;
    let change = with_journal(step(no, Step::Report { fence: 1 }), write(3, &[("fetch", Some("second"))]));
    advance(&*store, change).await.unwrap();
    let both = [journal_step(1, "fetch", Some("first")), journal_step(3, "fetch", Some("second"))];
    assert_eq!(journal(&*store, no).await, both);
}

async fn journal_survives_attempts_and_restarts(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| task.journal = write(1, &[("fetch", Some("page"))])).await;
    let kept = [journal_step(1, "fetch", Some("page"))];
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(journal(&*store, no).await, kept);
    let steps = [
        Step::Claim { probation: true },
        Step::EndProbation { fence: 2 },
        Step::Retry { fence: 2, at: at(0) },
        Step::Claim { probation: false },
        Step::Release { fence: 3, at: at(0) },
    ];
    for next in steps {
        advance(&*store, step(no, next)).await.unwrap();
        assert_eq!(journal(&*store, no).await, kept, "{next:?}");
    }
}

async fn end_of_a_turn_keeps_the_steps_of_the_task(database: &dyn TestDatabase) {
    let store = database.open();
    let no =
        accepted(&*store, |task| task.journal = write(1, &[("fetch", Some("page")), ("send", None)])).await;
    let calls = write(0, &[("call:fx", Some("asked")), ("call:mail", None)]);
    advance(&*store, with_journal(step(no, Step::Report { fence: 1 }), calls)).await.unwrap();
    let end = JournalChange::EndTurn(vec![journal_step(0, "call:fx", Some("shown"))]);
    let pause = with_status(no, Step::Pause { fence: 1 }, TaskState::InputRequired, "question");
    advance(&*store, with_journal(pause, end)).await.unwrap();
    let kept = [journal_step(0, "call:fx", Some("shown")), journal_step(0, "call:mail", None)];
    assert_eq!(journal(&*store, no).await, kept);
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(journal(&*store, no).await, kept);
}

async fn journal_is_cleared_with_the_end_of_a_task(database: &dyn TestDatabase) {
    let store = database.open();
    let ends = [
        (Step::Finish { fence: 1 }, TaskState::Completed),
        (Step::Pause { fence: 1 }, TaskState::InputRequired),
        (Step::Cancel, TaskState::Canceled),
        (Step::Expire { fence: 1 }, TaskState::Failed),
    ];
    for (end, state) in ends {
        let steps = write(1, &[("fetch", Some("page")), ("send", None)]);
        let no = accepted(&*store, |task| task.journal = steps).await;
        let change = with_journal(with_status(no, end, state, "over"), JournalChange::Clear);
        advance(&*store, change).await.unwrap();
        assert_eq!(journal(&*store, no).await, [], "{end:?}");
    }
    // Clearing an empty journal changes nothing.
    let no = accepted(&*store, |_| {}).await;
    advance(&*store, with_journal(report(no, &["on"]), JournalChange::Clear)).await.unwrap();
    assert_eq!(journal(&*store, no).await, []);
}

async fn rejected_change_writes_no_step(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| task.journal = write(1, &[("fetch", Some("page"))])).await;
    let stale = Step::Report { fence: 7 };
    for change in [write(1, &[("fetch", Some("other")), ("send", None)]), JournalChange::Clear] {
        let result = advance(&*store, with_journal(step(no, stale), change)).await;
        assert!(matches!(result, Err(NotCommitted::Conflict(_))), "{result:?}");
    }
    assert_eq!(journal(&*store, no).await, [journal_step(1, "fetch", Some("page"))]);
}

/// The step, the checkpoint and the log are one commit.
async fn failed_commit_writes_no_step(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    database.fail_saves();
    let change = with_journal(report(no, &["third"]), write(1, &[("fetch", Some("page"))]));
    assert!(matches!(advance(&*store, save(change, "state")).await, Err(NotCommitted::Unavailable(_))));
    database.restore_saves();
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(journal(&*store, no).await, []);
    assert_eq!(found(&*store, no).await.row.last_seq, 2);
}

async fn purge_and_deletion_remove_the_journal(database: &dyn TestDatabase) {
    let store = database.open();
    let finished_task = |task: &mut engine::store::Accept| {
        (task.state, task.work) = (TaskState::Completed, WorkState::Idle);
        task.journal = write(1, &[("fetch", Some("page")), ("send", None)]);
        task.progress_size = 5;
    };
    let (purged, kept) = (accepted(&*store, finished_task).await, accepted(&*store, finished_task).await);
    assert_eq!(store.purge(vec![ended(&*store, purged).await], at(7)).await.unwrap(), 1);
    assert_eq!(journal(&*store, purged).await, []);
    let row = store.work(purged).await.unwrap().unwrap().row;
    assert_eq!((row.size, row.progress_size), (0, 0));
    assert_eq!(store.drop_purged(at(8), 10).await.unwrap(), 1);
    assert!(store.work(purged).await.unwrap().is_none());
    assert_eq!(journal(&*store, kept).await.len(), 2);
}

async fn journal_of_another_task_is_unchanged(database: &dyn TestDatabase) {
    let store = database.open();
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(accepted(&*store, |task| task.journal = write(1, &[("fetch", Some("page"))])).await);
    }
    let change = with_journal(report(tasks[1], &["on"]), JournalChange::Clear);
    advance(&*store, change).await.unwrap();
    let counts = [
        journal(&*store, tasks[0]).await.len(),
        journal(&*store, tasks[1]).await.len(),
        journal(&*store, tasks[2]).await.len(),
    ];
    assert_eq!(counts, [1, 0, 1]);
    // A reopened task begins with the journal that its last turn has left: the engine clears it.
    let end = with_status(tasks[0], Step::Finish { fence: 1 }, TaskState::Completed, "over");
    advance(&*store, end).await.unwrap();
    let again = with_status(tasks[0], Step::Resume(finished(1)), TaskState::Working, "again");
    advance(&*store, with_journal(again, write(4, &[("fetch", None)]))).await.unwrap();
    assert_eq!(journal(&*store, tasks[0]).await.len(), 2);
}
