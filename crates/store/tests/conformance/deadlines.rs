//! Deadlines of tasks, and the size of a log without its progress messages.

use engine::{
    Clock, Scope, Store,
    ids::TaskNo,
    store::{Advance, Step, WorkState},
};
use protocol::{TaskState, Timestamp};

use super::{
    samples::{
        accepted, advance, at, finished, found, interrupted, log_texts, numbers, report, step, with_status,
    },
    test_database::TestDatabase,
};

on_every_database![
    deadline_is_written_with_the_task,
    deadline_stays_until_another_is_set,
    overdue_tasks_are_found_while_nobody_holds_them,
    overdue_task_expires_once,
    next_deadline_of_an_open_task_is_found,
    progress_messages_are_not_counted,
];

async fn deadline(store: &dyn Store, no: TaskNo) -> Option<Timestamp> {
    found(store, no).await.row.deadline
}

async fn overdue(store: &dyn Store, millis: i64, max: usize) -> Vec<TaskNo> {
    store.overdue(at(millis), max).await.unwrap().tasks.iter().map(|row| row.no).collect()
}

/// A task in a state with a deadline.
async fn until(store: &dyn Store, state: TaskState, work: WorkState, millis: i64) -> TaskNo {
    accepted(store, |task| (task.state, task.work, task.deadline) = (state, work, Some(at(millis)))).await
}

async fn deadline_is_written_with_the_task(database: &dyn TestDatabase) {
    let store = database.open();
    let none = accepted(&*store, |_| {}).await;
    let some = accepted(&*store, |task| task.deadline = Some(at(70))).await;
    assert_eq!((deadline(&*store, none).await, deadline(&*store, some).await), (None, Some(at(70))));
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!((deadline(&*store, none).await, deadline(&*store, some).await), (None, Some(at(70))));
}

async fn deadline_stays_until_another_is_set(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| task.deadline = Some(at(70))).await;
    let steps = [
        (Step::Report { fence: 1 }, TaskState::Working, None),
        (Step::QueueMessage, TaskState::Working, None),
        (Step::Requeue { fence: 1, at: at(0) }, TaskState::Working, None),
        // The skill is selected with the claim.
        (Step::Claim { probation: false }, TaskState::Working, Some(at(80))),
        (Step::Pause { fence: 2 }, TaskState::InputRequired, None),
        // Or with the answer to the question which one.
        (Step::Resume(interrupted(2)), TaskState::Working, Some(at(90))),
        (Step::Retry { fence: 3, at: at(0) }, TaskState::Working, None),
        (Step::Claim { probation: true }, TaskState::Working, None),
        (Step::Finish { fence: 4 }, TaskState::Completed, None),
    ];
    let mut expected = Some(at(70));
    for (step, state, set) in steps {
        let change = Advance { deadline: set, ..with_status(no, step, state, "on") };
        advance(&*store, change).await.unwrap();
        expected = set.or(expected);
        assert_eq!(deadline(&*store, no).await, expected, "{step:?}");
    }
    // Each way to reopen it, with and without a deadline.
    let reopened = [
        (Step::Resume(finished(4)), Some(at(200))),
        (Step::Queue { waiting: finished(5), at: at(0) }, None),
        (Step::Settle(finished(7)), Some(at(201))),
        (Step::Settle(finished(8)), None),
    ];
    for (step, deadline_of_turn) in reopened {
        let state = if matches!(step, Step::Settle(_)) { TaskState::Completed } else { TaskState::Working };
        let again = Advance { deadline: deadline_of_turn, ..with_status(no, step, state, "again") };
        let fence = advance(&*store, again).await.unwrap().fence;
        assert_eq!(deadline(&*store, no).await, deadline_of_turn, "{step:?}");
        match step {
            Step::Resume(_) => {
                let end = with_status(no, Step::Finish { fence }, TaskState::Completed, "done");
                advance(&*store, end).await.unwrap();
            }
            Step::Queue { .. } => {
                let end = with_status(no, Step::Expire { fence }, TaskState::Failed, "done");
                advance(&*store, end).await.unwrap();
            }
            _ => {}
        }
        assert_eq!(deadline(&*store, no).await, deadline_of_turn, "{step:?}");
    }
}

async fn overdue_tasks_are_found_while_nobody_holds_them(database: &dyn TestDatabase) {
    let store = database.open();
    let held = until(&*store, TaskState::Working, WorkState::Held, 10).await;
    let queued = until(&*store, TaskState::Submitted, WorkState::Due(at(500)), 20).await;
    let asking = until(&*store, TaskState::InputRequired, WorkState::Idle, 30).await;
    let locked = until(&*store, TaskState::AuthRequired, WorkState::Idle, 15).await;
    until(&*store, TaskState::Completed, WorkState::Idle, 5).await;
    accepted(&*store, |task| task.work = WorkState::Due(at(0))).await;
    let foreign = accepted(&*store, |task| {
        (task.scope, task.deadline) = (Scope::anonymous("other", "agent"), Some(at(40)));
        task.work = WorkState::Due(at(500));
    })
    .await;
    let cases = [
        (14, vec![]),
        (15, vec![locked]),
        (29, vec![locked, queued]),
        (30, vec![locked, queued, asking]),
        (40, vec![locked, queued, asking, foreign]),
    ];
    for (now, tasks) in cases {
        for max in [0, 1, 2, 3, 100] {
            let first: Vec<_> = tasks.iter().take(max).copied().collect();
            assert_eq!(overdue(&*store, now, max).await, first, "{now}, {max}");
        }
    }
    // A process that crashes holds nothing.
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(overdue(&*store, 15, 10).await, [held, locked]);
    advance(&*store, step(held, Step::Claim { probation: false })).await.unwrap();
    assert_eq!(overdue(&*store, 15, 10).await, [locked]);
    advance(&*store, step(held, Step::Release { fence: 2, at: at(0) })).await.unwrap();
    assert_eq!(overdue(&*store, 15, 10).await, [held, locked]);
}

/// A task that was claimed or answered after it was found is not affected.
async fn overdue_task_expires_once(database: &dyn TestDatabase) {
    let store = database.open();
    let expired = until(&*store, TaskState::Submitted, WorkState::Due(at(0)), 10).await;
    let claimed = until(&*store, TaskState::Submitted, WorkState::Due(at(0)), 10).await;
    let answered = until(&*store, TaskState::InputRequired, WorkState::Idle, 10).await;
    let rows = store.overdue(at(10), 10).await.unwrap().tasks;
    assert_eq!(rows.len(), 3);
    advance(&*store, step(claimed, Step::Claim { probation: false })).await.unwrap();
    let resume = with_status(answered, Step::Resume(interrupted(1)), TaskState::Working, "answer");
    advance(&*store, resume).await.unwrap();
    for row in &rows {
        let end = with_status(row.no, Step::Expire { fence: row.fence }, TaskState::Failed, "too late");
        for first in [true, false] {
            let result = advance(&*store, end.clone()).await;
            assert_eq!(result.is_ok(), first && row.no == expired, "{:?}", row.no);
        }
    }
    assert_eq!(overdue(&*store, 10, 10).await, []);
    let due = store.due(at(10), 10).await.unwrap();
    assert_eq!((numbers(&due.tasks), due.next), (vec![], None), "the failed task is not due");
    assert_eq!(log_texts(&*store, expired).await, ["first", "second", "too late"]);
}

async fn next_deadline_of_an_open_task_is_found(database: &dyn TestDatabase) {
    let store = database.open();
    let next = async |now| store.overdue(at(now), 10).await.unwrap().next;
    until(&*store, TaskState::InputRequired, WorkState::Idle, 30).await;
    let queued = until(&*store, TaskState::Submitted, WorkState::Due(at(20)), 1_000_000).await;
    until(&*store, TaskState::Completed, WorkState::Idle, 10).await;
    for (now, expected) in [(0, Some(30)), (20, Some(30)), (29, Some(30)), (30, Some(1_000_000))] {
        assert_eq!(next(now).await, expected.map(at), "{now}");
    }
    // The process that holds a task may lose it before its deadline.
    advance(&*store, step(queued, Step::Claim { probation: false })).await.unwrap();
    assert_eq!(next(30).await, Some(at(1_000_000)));
    assert_eq!(next(1_000_000).await, None);
}

async fn progress_messages_are_not_counted(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| task.progress_size = 5).await;
    let row = found(&*store, no).await.row;
    assert_eq!(row.progress_size, 5);
    let mut size = row.size;
    // A report that only appends, one with a status, and one without a log.
    let appends = Advance { progress_size: 40, ..report(no, &["progress"]) };
    let updates = Advance {
        progress_size: 2,
        ..with_status(no, Step::Report { fence: 1 }, TaskState::Working, "progress")
    };
    let mut progress_size = 5;
    for change in [appends, updates, step(no, Step::Report { fence: 1 })] {
        (size, progress_size) =
            (size + change.log.segment().len() as u64, progress_size + change.progress_size);
        let committed = advance(&*store, change).await.unwrap();
        assert_eq!(committed.size, size - progress_size);
        let row = found(&*store, no).await.row;
        assert_eq!((row.size, row.progress_size), (size, progress_size));
    }
    assert_eq!(progress_size, 47);
}
