//! A refused change leaves nothing behind, and those beside it go on.

use engine::{
    Clock,
    ids::TaskNo,
    store::{Conflict, NotCommitted, Step, Visibility},
};
use protocol::TaskState;

use super::{
    bench::Bench,
    samples::{accepted, advance, at, hand_over, number, report, save, says, step, told},
};

on_every_database![
    a_refused_change_writes_nothing_and_its_neighbours_are_committed,
    a_step_of_no_task_meets_nothing,
    a_stale_fence_never_writes,
];

async fn a_refused_change_writes_nothing_and_its_neighbours_are_committed(bench: &dyn Bench) {
    let store = bench.open();
    let (one, other) = (accepted(&*store, |_| {}).await, accepted(&*store, |_| {}).await);
    let canceled = says(one, Step::Cancel, TaskState::Canceled, "canceled");
    advance(&*store, canceled).await.unwrap();

    let stalled = bench.stall();
    let mut receipts = Vec::new();
    for round in ["a", "b", "c"] {
        let late = save(says(one, Step::Finish { fence: 1 }, TaskState::Completed, "late"), "late");
        receipts.push((false, hand_over(&*store, late)));
        receipts.push((true, hand_over(&*store, save(report(other, &[round]), "kept"))));
        let mut stale = save(report(other, &["stale", "stale"]), "stale");
        stale.step = Step::Report { fence: 0 };
        stale.visibility = Some(Visibility::Hidden);
        receipts.push((false, hand_over(&*store, stale)));
    }
    drop(stalled);
    for (wanted, receipt) in receipts {
        let result = receipt.await;
        assert_eq!(result.is_ok(), wanted, "{result:?}");
    }

    let store = bench.reopen(store, &Clock::manual(at(0)));
    assert_eq!(told(&*store, one).await, ["first", "second", "canceled"]);
    assert_eq!(told(&*store, other).await, ["first", "second", "a", "b", "c"]);
    let (one, other) = (store.work(one).await.unwrap().unwrap(), store.work(other).await.unwrap().unwrap());
    assert_eq!((one.saved, other.saved.as_deref()), (None, Some(b"kept".as_slice())));
    assert_eq!(other.snapshot.row.visibility, Visibility::Visible);
}

async fn a_step_of_no_task_meets_nothing(bench: &dyn Bench) {
    let store = bench.open();
    let free = number(&*store).await;
    let nothing = NotCommitted::Conflict(Conflict { state: None, fence: 0, unanswered: 0 });
    for no in [free, TaskNo(i64::MAX >> 24), TaskNo(-1)] {
        let result = advance(&*store, save(says(no, Step::Cancel, TaskState::Canceled, "x"), "x")).await;
        assert_eq!(result, Err(nothing.clone()), "{no:?}");
        assert!(store.work(no).await.unwrap().is_none(), "{no:?}");
    }
}

async fn a_stale_fence_never_writes(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    let store = bench.reopen(store, &Clock::manual(at(0)));
    let claimed = advance(&*store, step(no, Step::Claim)).await.unwrap();
    assert_eq!((claimed.fence, claimed.attempt), (2, 2));
    let zombie = [
        Step::Report { fence: 1 },
        Step::Finish { fence: 1 },
        Step::Pause { fence: 1 },
        Step::Retry { fence: 1, at: at(0) },
        Step::Again { fence: 1, at: at(0) },
        Step::Release { fence: 1, at: at(0) },
    ];
    let met = NotCommitted::Conflict(Conflict { state: Some(TaskState::Working), fence: 2, unanswered: 0 });
    for stale in zombie {
        let result = advance(&*store, save(says(no, stale, TaskState::Working, "late"), "late")).await;
        assert_eq!(result, Err(met.clone()), "{stale:?}");
    }
    let work = store.work(no).await.unwrap().unwrap();
    assert_eq!((told(&*store, no).await.len(), work.saved), (2, None));
}
