//! The history of a context before a task: its earlier tasks, oldest first.

use engine::{
    Scope, Store,
    ids::TaskNo,
    store::{NewContext, Snapshot, Visibility, WorkState},
    task::fold,
};
use protocol::TaskState;

use super::{
    samples::{accepted, foreign_scope, found, number, scope},
    test_database::TestDatabase,
};

on_every_database![
    earlier_tasks_are_returned_oldest_first,
    limit_keeps_the_newest_tasks,
    hidden_tasks_are_included_and_undecided_ones_are_not,
    context_of_another_scope_is_empty,
    client_named_context_is_read_the_same_way,
];

fn numbers(snapshots: &[Snapshot]) -> Vec<TaskNo> {
    snapshots.iter().map(|snapshot| snapshot.row.no).collect()
}

async fn before(store: &dyn Store, scope: &Scope, first: TaskNo, before: TaskNo, max: usize) -> Vec<TaskNo> {
    numbers(&store.context_history(scope, first, before, max).await.unwrap())
}

/// Four tasks of one context with unrelated tasks between them.
async fn four_tasks(store: &dyn Store) -> [TaskNo; 4] {
    let first = accepted(store, |_| {}).await;
    let context = found(store, first).await.row.context;
    let mut tasks = [first; 4];
    for task in &mut tasks[1..] {
        accepted(store, |_| {}).await;
        *task = accepted(store, |task| task.context = NewContext::Joined(context.clone())).await;
    }
    tasks
}

async fn earlier_tasks_are_returned_oldest_first(database: &dyn TestDatabase) {
    let store = database.open();
    let [a, b, c, d] = four_tasks(&*store).await;
    for (task, earlier) in [(a, &[][..]), (b, &[a]), (c, &[a, b]), (d, &[a, b, c])] {
        assert_eq!(before(&*store, &scope(), a, task, 100).await, earlier, "{task:?}");
    }
    let next = number(&*store).await;
    let read = store.context_history(&scope(), a, next, 100).await.unwrap();
    assert_eq!(numbers(&read), [a, b, c, d]);
    assert!(read.iter().all(|snapshot| fold::snapshot(&store.ids(), snapshot).unwrap().history.len() == 1));
}

async fn limit_keeps_the_newest_tasks(database: &dyn TestDatabase) {
    let store = database.open();
    let [a, b, c, d] = four_tasks(&*store).await;
    for (max, newest) in [(0, &[][..]), (1, &[c]), (2, &[b, c]), (3, &[a, b, c]), (9, &[a, b, c])] {
        assert_eq!(before(&*store, &scope(), a, d, max).await, newest, "{max}");
    }
}

async fn hidden_tasks_are_included_and_undecided_ones_are_not(database: &dyn TestDatabase) {
    let store = database.open();
    let first = accepted(&*store, |task| {
        task.visibility = Visibility::Hidden;
        (task.state, task.work) = (TaskState::Completed, WorkState::Idle);
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

async fn context_of_another_scope_is_empty(database: &dyn TestDatabase) {
    let store = database.open();
    let [a, .., d] = four_tasks(&*store).await;
    assert!(before(&*store, &foreign_scope(), a, d, 100).await.is_empty());
    accepted(&*store, |task| task.scope = foreign_scope()).await;
    assert!(before(&*store, &foreign_scope(), a, d, 100).await.is_empty());
}

async fn client_named_context_is_read_the_same_way(database: &dyn TestDatabase) {
    let store = database.open();
    let mut tasks = Vec::new();
    for name in ["chat", "other", "chat", "chat"] {
        tasks.push(accepted(&*store, |task| task.context = NewContext::Named(name.into())).await);
    }
    assert_eq!(before(&*store, &scope(), tasks[0], tasks[3], 100).await, [tasks[0], tasks[2]]);
    assert!(before(&*store, &scope(), tasks[1], tasks[1], 100).await.is_empty());
}
