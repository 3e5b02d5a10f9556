//! Unclaimed work is found when it is due, longest due first.

use engine::{
    Clock, Scope, Store,
    ids::TaskNo,
    store::{Due, Step, Visibility, WorkState},
};
use protocol::TaskState;

use super::{
    samples::{accepted, advance, at, foreign_scope, numbers, scope, step, suspects, tag, task, with_status},
    test_database::TestDatabase,
};

on_every_database![
    longest_due_is_first_and_ties_go_to_the_oldest_task,
    work_is_due_from_its_time_on_and_the_next_time_is_returned,
    limit_is_respected,
    next_time_is_returned_with_a_full_page,
    held_and_finished_work_is_not_due,
    work_scheduled_by_a_wrong_clock_is_due_first,
    suspect_scheduled_by_a_wrong_clock_is_due,
    due_task_has_its_scope_and_its_time,
    many_queued_tasks_are_read_at_once,
    work_of_one_task_is_found_without_its_scope,
];

async fn due_at(store: &dyn Store, millis: i64) -> TaskNo {
    accepted(store, |task| (task.state, task.work) = (TaskState::Submitted, WorkState::Due(at(millis)))).await
}

async fn due(store: &dyn Store, millis: i64, max: usize) -> Due {
    store.due(at(millis), max).await.unwrap()
}

async fn longest_due_is_first_and_ties_go_to_the_oldest_task(database: &dyn TestDatabase) {
    let store = database.open();
    let mut tasks = Vec::new();
    for millis in [30, 10, 20, 10, 30] {
        tasks.push(due_at(&*store, millis).await);
    }
    let [a, b, c, d, e] = tasks[..] else { unreachable!() };
    let found = due(&*store, 30, 100).await;
    assert_eq!((numbers(&found.tasks), found.next), (vec![b, d, c, a, e], None));
}

async fn work_is_due_from_its_time_on_and_the_next_time_is_returned(database: &dyn TestDatabase) {
    let store = database.open();
    let found = due(&*store, 1_000, 100).await;
    assert_eq!((numbers(&found.tasks), found.next), (vec![], None));
    let (soon, late) = (due_at(&*store, 10).await, due_at(&*store, 20).await);
    let expected = [
        (9, vec![], Some(at(10))),
        (10, vec![soon], Some(at(20))),
        (19, vec![soon], Some(at(20))),
        (20, vec![soon, late], None),
    ];
    for (now, tasks, next) in expected {
        let found = due(&*store, now, 100).await;
        assert_eq!((numbers(&found.tasks), found.next), (tasks, next), "{now}");
    }
}

async fn limit_is_respected(database: &dyn TestDatabase) {
    let store = database.open();
    let mut tasks = Vec::new();
    for millis in [1, 2, 3] {
        tasks.push(due_at(&*store, millis).await);
    }
    for max in 0..=4 {
        assert_eq!(numbers(&due(&*store, 5, max).await.tasks), tasks[..max.min(3)], "{max}");
    }
}

async fn next_time_is_returned_with_a_full_page(database: &dyn TestDatabase) {
    let store = database.open();
    let tasks = [due_at(&*store, 1).await, due_at(&*store, 2).await];
    due_at(&*store, 9).await;
    let found = due(&*store, 5, 2).await;
    assert_eq!((numbers(&found.tasks), found.next), (tasks.to_vec(), Some(at(9))));
}

async fn held_and_finished_work_is_not_due(database: &dyn TestDatabase) {
    let store = database.open();
    let (no, finished) = (due_at(&*store, 1).await, due_at(&*store, 2).await);
    advance(&*store, with_status(finished, Step::Cancel, TaskState::Canceled, "over")).await.unwrap();
    let claimed = advance(&*store, step(no, Step::Claim { probation: false })).await.unwrap();
    assert!(due(&*store, 100, 100).await.tasks.is_empty());
    advance(&*store, step(no, Step::Retry { fence: claimed.fence, at: at(50) })).await.unwrap();
    assert_eq!(due(&*store, 49, 100).await.next, Some(at(50)));
    assert_eq!(numbers(&due(&*store, 50, 100).await.tasks), [no]);
}

/// The clock was a day ahead when this work was scheduled, or a day behind now.
async fn work_scheduled_by_a_wrong_clock_is_due_first(database: &dyn TestDatabase) {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let store = database.open();
    let (usual, soon) = (due_at(&*store, 10).await, due_at(&*store, 100_020).await);
    let wrong = [due_at(&*store, DAY).await, due_at(&*store, DAY + 5).await];
    let last = due_at(&*store, DAY + 9).await;
    let found = due(&*store, 20, 100).await;
    assert_eq!(numbers(&found.tasks), [wrong[0], wrong[1], last, usual]);
    assert_eq!(found.next, Some(at(100_020)));
    for max in 0..=4 {
        assert_eq!(due(&*store, 20, max).await.tasks.len(), max, "{max}");
    }
    // By the clock that was a day ahead, none of it is late or early.
    let found = due(&*store, DAY + 7, 100).await;
    assert_eq!(
        (numbers(&found.tasks), found.next),
        (vec![usual, soon, wrong[0], wrong[1]], Some(at(DAY + 9)))
    );
}

async fn suspect_scheduled_by_a_wrong_clock_is_due(database: &dyn TestDatabase) {
    let ahead = Clock::manual(at(24 * 60 * 60 * 1_000));
    let mut store = database.open();
    let no = due_at(&*store, 0).await;
    for _ in 0..2 {
        advance(&*store, step(no, Step::Claim { probation: false })).await.unwrap();
        store = database.reopen(store, &ahead);
    }
    let found = due(&*store, 0, 100).await;
    assert_eq!((numbers(&found.tasks), suspects(&found.tasks)), (vec![no], vec![no]));
}

async fn due_task_has_its_scope_and_its_time(database: &dyn TestDatabase) {
    let store = database.open();
    let scopes = [scope(), foreign_scope(), Scope::anonymous("default", "other")];
    let mut tasks = Vec::new();
    for (index, owner) in scopes.iter().enumerate() {
        let time = at(10 * index as i64);
        let no = accepted(&*store, |task| (task.scope, task.work) = (owner.clone(), WorkState::Due(time)));
        tasks.push((no.await, time));
    }
    let found = due(&*store, 100, 100).await;
    for ((task, (no, time)), owner) in found.tasks.iter().zip(tasks).zip(scopes) {
        assert_eq!((task.no, task.at, &task.scope, task.suspect), (no, time, &owner, false));
        assert!(task.unselected);
    }
    let skill = |task: &mut engine::store::Accept| {
        (task.skill, task.work) = (Some("draw".into()), WorkState::Due(at(0)));
    };
    let selected = accepted(&*store, skill).await;
    let found = due(&*store, 100, 100).await;
    let with_skill: Vec<_> = found.tasks.iter().filter(|task| !task.unselected).map(|task| task.no).collect();
    assert_eq!(with_skill, [selected]);
}

async fn work_of_one_task_is_found_without_its_scope(database: &dyn TestDatabase) {
    let store = database.open();
    let accept = |change: fn(&mut engine::store::Accept)| accepted(&*store, change);
    let queued = accept(|task| {
        (task.scope, task.work, task.state) = (foreign_scope(), WorkState::Due(at(7)), TaskState::Submitted);
    });
    let queued = queued.await;
    let found = store.task_work(queued, tag(queued)).await.unwrap().unwrap();
    let due = found.queued.unwrap();
    assert_eq!(found.state, TaskState::Submitted);
    assert_eq!((due.no, due.at, due.scope, due.suspect), (queued, at(7), foreign_scope(), false));
    assert!(store.task_work(queued, tag(TaskNo(queued.0 + 1))).await.unwrap().is_none(), "another tag");

    let held = accept(|_| ()).await;
    let found = store.task_work(held, tag(held)).await.unwrap().unwrap();
    assert!(found.state == TaskState::Working && found.queued.is_none());
    for visibility in [Visibility::Undecided, Visibility::Hidden, Visibility::Purged] {
        let no = accepted(&*store, |task| task.visibility = visibility).await;
        assert!(store.task_work(no, tag(no)).await.unwrap().is_none(), "{visibility:?}");
    }
}

#[expect(clippy::print_stdout, reason = "the time is for the reader; a slow machine must not fail")]
async fn many_queued_tasks_are_read_at_once(database: &dyn TestDatabase) {
    const TASKS: usize = 10_000;
    let store = database.open();
    let first = store.reserve(TASKS as i64).await.unwrap();
    let receipts: Vec<_> = (0..TASKS as i64)
        .map(|index| {
            let new = engine::store::Accept {
                work: WorkState::Due(at(index / 7)),
                scope: Scope::anonymous("default", &format!("agent {}", index % 100)),
                ..task(TaskNo(first.0 + index))
            };
            store.commit(engine::store::Change::Accept(Box::new(new)))
        })
        .collect();
    for receipt in receipts {
        receipt.await.unwrap();
    }
    for max in [64, TASKS] {
        let started = std::time::Instant::now();
        let found = due(&*store, 100_000, max).await;
        println!("{max} of {TASKS} queued tasks: {:?}", started.elapsed());
        assert_eq!(found.tasks.len(), max);
        assert!(found.tasks.iter().map(|task| task.no.0).eq(first.0..first.0 + max as i64));
    }
}
