//! Work that nobody holds is found when its time has come, longest due first.

use engine::{
    Store,
    ids::TaskNo,
    store::{Due, Step, Work},
};
use protocol::TaskState;

use super::{
    bench::Bench,
    samples::{accepted, advance, at, says, step},
};

on_every_database![
    the_longest_due_comes_first_and_ties_by_the_oldest_task,
    work_is_due_from_its_time_on_and_the_next_time_is_told,
    no_more_is_found_than_asked_for,
    the_next_time_is_told_beside_a_full_answer,
    held_and_finished_work_is_not_due,
];

async fn due_at(store: &dyn Store, millis: i64) -> TaskNo {
    accepted(store, |task| (task.state, task.work) = (TaskState::Submitted, Work::Due(at(millis)))).await
}

async fn due(store: &dyn Store, millis: i64, max: usize) -> Due {
    store.due(at(millis), max).await.unwrap()
}

async fn the_longest_due_comes_first_and_ties_by_the_oldest_task(bench: &dyn Bench) {
    let store = bench.open();
    let mut tasks = Vec::new();
    for millis in [30, 10, 20, 10, 30] {
        tasks.push(due_at(&*store, millis).await);
    }
    let [a, b, c, d, e] = tasks[..] else { unreachable!() };
    let found = due(&*store, 30, 100).await;
    assert_eq!((found.tasks, found.next), (vec![b, d, c, a, e], None));
}

async fn work_is_due_from_its_time_on_and_the_next_time_is_told(bench: &dyn Bench) {
    let store = bench.open();
    let found = due(&*store, 1_000, 100).await;
    assert_eq!((found.tasks, found.next), (vec![], None));
    let (soon, late) = (due_at(&*store, 10).await, due_at(&*store, 20).await);
    let expected = [
        (9, vec![], Some(at(10))),
        (10, vec![soon], Some(at(20))),
        (19, vec![soon], Some(at(20))),
        (20, vec![soon, late], None),
    ];
    for (now, tasks, next) in expected {
        let found = due(&*store, now, 100).await;
        assert_eq!((found.tasks, found.next), (tasks, next), "{now}");
    }
}

async fn no_more_is_found_than_asked_for(bench: &dyn Bench) {
    let store = bench.open();
    let mut tasks = Vec::new();
    for millis in [1, 2, 3] {
        tasks.push(due_at(&*store, millis).await);
    }
    for max in 0..=4 {
        assert_eq!(due(&*store, 5, max).await.tasks, tasks[..max.min(3)], "{max}");
    }
}

async fn the_next_time_is_told_beside_a_full_answer(bench: &dyn Bench) {
    let store = bench.open();
    let tasks = [due_at(&*store, 1).await, due_at(&*store, 2).await];
    due_at(&*store, 9).await;
    let found = due(&*store, 5, 2).await;
    assert_eq!((found.tasks, found.next), (tasks.to_vec(), Some(at(9))));
}

async fn held_and_finished_work_is_not_due(bench: &dyn Bench) {
    let store = bench.open();
    let (no, over) = (due_at(&*store, 1).await, due_at(&*store, 2).await);
    advance(&*store, says(over, Step::Cancel, TaskState::Canceled, "over")).await.unwrap();
    let claimed = advance(&*store, step(no, Step::Claim)).await.unwrap();
    assert!(due(&*store, 100, 100).await.tasks.is_empty());
    advance(&*store, step(no, Step::Retry { fence: claimed.fence, at: at(50) })).await.unwrap();
    assert_eq!(due(&*store, 49, 100).await.next, Some(at(50)));
    assert_eq!(due(&*store, 50, 100).await.tasks, [no]);
}
