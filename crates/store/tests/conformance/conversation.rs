//! What was said in a conversation before a task: its earlier tasks, oldest first.

use engine::{
    Scope, Store,
    ids::TaskNo,
    store::{NewContext, Snapshot, Visibility, Work},
    task::fold,
};
use protocol::TaskState;

use super::{
    bench::Bench,
    samples::{accepted, foreign_scope, found, number, scope},
};

on_every_database![
    earlier_tasks_come_oldest_first,
    of_a_long_conversation_the_newest_tasks_are_read,
    bare_answers_belong_to_a_conversation_and_undecided_tasks_do_not,
    a_conversation_of_another_scope_is_empty,
    a_conversation_that_a_client_named_is_read_the_same_way,
];

fn numbers(snapshots: &[Snapshot]) -> Vec<TaskNo> {
    snapshots.iter().map(|snapshot| snapshot.row.no).collect()
}

async fn before(store: &dyn Store, scope: &Scope, first: TaskNo, before: TaskNo, max: usize) -> Vec<TaskNo> {
    numbers(&store.conversation(scope, first, before, max).await.unwrap())
}

/// Four tasks of one conversation with strangers between them.
async fn four(store: &dyn Store) -> [TaskNo; 4] {
    let first = accepted(store, |_| {}).await;
    let context = found(store, first).await.row.context;
    let mut tasks = [first; 4];
    for task in &mut tasks[1..] {
        accepted(store, |_| {}).await;
        *task = accepted(store, |task| task.context = NewContext::Joined(context.clone())).await;
    }
    tasks
}

async fn earlier_tasks_come_oldest_first(bench: &dyn Bench) {
    let store = bench.open();
    let [a, b, c, d] = four(&*store).await;
    for (task, earlier) in [(a, &[][..]), (b, &[a]), (c, &[a, b]), (d, &[a, b, c])] {
        assert_eq!(before(&*store, &scope(), a, task, 100).await, earlier, "{task:?}");
    }
    let next = number(&*store).await;
    let read = store.conversation(&scope(), a, next, 100).await.unwrap();
    assert_eq!(numbers(&read), [a, b, c, d]);
    assert!(read.iter().all(|snapshot| fold::snapshot(&store.ids(), snapshot).unwrap().history.len() == 1));
}

async fn of_a_long_conversation_the_newest_tasks_are_read(bench: &dyn Bench) {
    let store = bench.open();
    let [a, b, c, d] = four(&*store).await;
    for (max, newest) in [(0, &[][..]), (1, &[c]), (2, &[b, c]), (3, &[a, b, c]), (9, &[a, b, c])] {
        assert_eq!(before(&*store, &scope(), a, d, max).await, newest, "{max}");
    }
}

async fn bare_answers_belong_to_a_conversation_and_undecided_tasks_do_not(bench: &dyn Bench) {
    let store = bench.open();
    let first = accepted(&*store, |task| {
        task.visibility = Visibility::Hidden;
        (task.state, task.work) = (TaskState::Completed, Work::Idle);
    })
    .await;
    let context = found(&*store, first).await.row.context;
    accepted(&*store, |task| {
        task.context = NewContext::Joined(context.clone());
        task.visibility = Visibility::Undecided;
    })
    .await;
    let last = accepted(&*store, |task| task.context = NewContext::Joined(context)).await;
    assert_eq!(before(&*store, &scope(), first, last, 100).await, [first]);
}

async fn a_conversation_of_another_scope_is_empty(bench: &dyn Bench) {
    let store = bench.open();
    let [a, .., d] = four(&*store).await;
    assert!(before(&*store, &foreign_scope(), a, d, 100).await.is_empty());
    accepted(&*store, |task| task.scope = foreign_scope()).await;
    assert!(before(&*store, &foreign_scope(), a, d, 100).await.is_empty());
}

async fn a_conversation_that_a_client_named_is_read_the_same_way(bench: &dyn Bench) {
    let store = bench.open();
    let mut tasks = Vec::new();
    for name in ["chat", "other", "chat", "chat"] {
        tasks.push(accepted(&*store, |task| task.context = NewContext::Named(name.into())).await);
    }
    assert_eq!(before(&*store, &scope(), tasks[0], tasks[3], 100).await, [tasks[0], tasks[2]]);
    assert!(before(&*store, &scope(), tasks[1], tasks[1], 100).await.is_empty());
}
