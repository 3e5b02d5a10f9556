//! A rejected change writes nothing, and the other changes of its batch are committed.

use engine::{
    Clock,
    ids::TaskNo,
    store::{Conflict, NotCommitted, SavedState, Step, Visibility},
};
use protocol::TaskState;

use super::{
    samples::{accepted, advance, at, log_texts, number, queue_advance, report, save, step, with_status},
    test_database::TestDatabase,
};

on_every_database![
    rejected_change_writes_nothing_and_the_rest_of_the_batch_is_committed,
    step_of_an_unknown_task_conflicts_with_nothing,
    stale_fencing_token_never_writes,
];

async fn rejected_change_writes_nothing_and_the_rest_of_the_batch_is_committed(database: &dyn TestDatabase) {
    let store = database.open();
    let (one, other) = (accepted(&*store, |_| {}).await, accepted(&*store, |_| {}).await);
    let canceled = with_status(one, Step::Cancel, TaskState::Canceled, "canceled");
    advance(&*store, canceled).await.unwrap();

    let blocked = database.block_writes();
    let mut receipts = Vec::new();
    for round in ["a", "b", "c"] {
        let late = save(with_status(one, Step::Finish { fence: 1 }, TaskState::Completed, "late"), "late");
        receipts.push((false, queue_advance(&*store, late)));
        receipts.push((true, queue_advance(&*store, save(report(other, &[round]), "kept"))));
        let mut stale = save(report(other, &["stale", "stale"]), "stale");
        stale.step = Step::Report { fence: 0 };
        stale.visibility = Some(Visibility::Hidden);
        receipts.push((false, queue_advance(&*store, stale)));
    }
    drop(blocked);
    for (wanted, receipt) in receipts {
        let result = receipt.await;
        assert_eq!(result.is_ok(), wanted, "{result:?}");
    }

    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(log_texts(&*store, one).await, ["first", "second", "canceled"]);
    assert_eq!(log_texts(&*store, other).await, ["first", "second", "a", "b", "c"]);
    let (one, other) = (store.work(one).await.unwrap().unwrap(), store.work(other).await.unwrap().unwrap());
    assert_eq!((one.saved, other.saved), (None, Some(SavedState::new(None, "kept"))));
    assert_eq!(other.row.visibility, Visibility::Visible);
}

async fn step_of_an_unknown_task_conflicts_with_nothing(database: &dyn TestDatabase) {
    let store = database.open();
    let free = number(&*store).await;
    let nothing = NotCommitted::Conflict(Conflict { state: None, fence: 0, unanswered: 0 });
    for no in [free, TaskNo(i64::MAX >> 24), TaskNo(-1)] {
        let result =
            advance(&*store, save(with_status(no, Step::Cancel, TaskState::Canceled, "x"), "x")).await;
        assert_eq!(result, Err(nothing.clone()), "{no:?}");
        assert!(store.work(no).await.unwrap().is_none(), "{no:?}");
    }
}

async fn stale_fencing_token_never_writes(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let store = database.reopen(store, &Clock::manual(at(0)));
    let claimed = advance(&*store, step(no, Step::Claim { probation: false })).await.unwrap();
    assert_eq!((claimed.fence, claimed.attempt), (2, 2));
    let stale_steps = [
        Step::Report { fence: 1 },
        Step::Finish { fence: 1 },
        Step::Pause { fence: 1 },
        Step::Retry { fence: 1, at: at(0) },
        Step::Requeue { fence: 1, at: at(0) },
        Step::Release { fence: 1, at: at(0) },
    ];
    let met = NotCommitted::Conflict(Conflict { state: Some(TaskState::Working), fence: 2, unanswered: 0 });
    for stale in stale_steps {
        let result = advance(&*store, save(with_status(no, stale, TaskState::Working, "late"), "late")).await;
        assert_eq!(result, Err(met.clone()), "{stale:?}");
    }
    let work = store.work(no).await.unwrap().unwrap();
    assert_eq!((log_texts(&*store, no).await.len(), work.saved), (2, None));
}
