//! The history of a context before a task: its earlier tasks, oldest first.

use engine::{
    Scope, Store,
    ids::TaskNo,
    log::Log,
    store::{Advance, NewContext, Snapshot, Step, Visibility, WorkState},
    task::fold,
};
use protocol::{Message, TaskState};

use super::{
    samples::{
        accepted, advance, artifact, at, ended, foreign_scope, found, interrupted, number, scope, step,
        user_message, with_status,
    },
    test_database::TestDatabase,
};

on_every_database![
    earlier_tasks_are_returned_oldest_first,
    limit_keeps_the_newest_tasks,
    hidden_tasks_are_included_and_undecided_ones_are_not,
    purged_tasks_are_left_out,
    context_of_another_scope_is_empty,
    client_named_context_is_read_the_same_way,
    oldest_messages_beyond_the_byte_limit_are_left_out,
];

fn numbers(snapshots: &[Snapshot]) -> Vec<TaskNo> {
    snapshots.iter().map(|snapshot| snapshot.row.no).collect()
}

async fn before(store: &dyn Store, scope: &Scope, first: TaskNo, before: TaskNo, max: usize) -> Vec<TaskNo> {
    numbers(&store.context_history(scope, first, before, max, usize::MAX).await.unwrap())
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
    let read = store.context_history(&scope(), a, next, 100, usize::MAX).await.unwrap();
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

async fn purged_tasks_are_left_out(database: &dyn TestDatabase) {
    let store = database.open();
    let [a, b, c, d] = four_tasks(&*store).await;
    for task in [a, c] {
        let finish = with_status(task, Step::Finish { fence: 1 }, TaskState::Completed, "done");
        advance(&*store, finish).await.unwrap();
        store.purge(vec![ended(&*store, task).await], at(0)).await.unwrap();
    }
    assert_eq!(before(&*store, &scope(), a, d, 100).await, [b]);
    assert_eq!(before(&*store, &scope(), a, d, 1).await, [b], "a purged task does not count");
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

/// Each task has a message, a large artifact, a question and an answer. The store folds them while this is read.
async fn oldest_messages_beyond_the_byte_limit_are_left_out(database: &dyn TestDatabase) {
    let store = database.open();
    let tasks = four_tasks(&*store).await;
    let text = |number: usize, name: &str| format!("{number}{name:_<1000}");
    for (number, no) in tasks.into_iter().enumerate() {
        let large = Log::pack([artifact(&"x".repeat(100 << 10))]);
        advance(&*store, Advance { log: large, ..step(no, Step::Report { fence: 1 }) }).await.unwrap();
        let asks = with_status(no, Step::Pause { fence: 1 }, TaskState::InputRequired, &text(number, "ask"));
        advance(&*store, asks).await.unwrap();
        let answer = Log::pack([user_message(TaskState::Working, &text(number, "answer"))]);
        let status = Some((TaskState::Working, at(0)));
        let resumed = Advance { log: answer, status, ..step(no, Step::Resume(interrupted(1))) };
        advance(&*store, resumed).await.unwrap();
    }
    let next = number(&*store).await;
    let read = async |max_bytes| {
        let read = store.context_history(&scope(), tasks[0], next, 100, max_bytes).await.unwrap();
        let history = |snapshot: &Snapshot| fold::snapshot(&store.ids(), snapshot).unwrap().history;
        assert!(read.iter().all(|snapshot| snapshot.bytes <= 20_000), "artifacts are not read");
        read.iter().flat_map(history).map(|message: Message| message.text()).collect::<Vec<_>>()
    };
    let all = read(usize::MAX).await;
    assert_eq!(all.len(), 12);
    assert_eq!(all[9..], ["first".to_owned(), text(3, "ask"), text(3, "answer")]);
    assert!(read(0).await.is_empty());
    let mut shown = 0;
    for max_bytes in (0..20_000).step_by(500) {
        let some = read(max_bytes).await;
        assert_eq!(some, all[12 - some.len()..], "the newest ones");
        // A message is stored once as its text and once as its id.
        let texts: usize = some.iter().map(|text| 2 * text.len()).sum();
        assert!(texts <= max_bytes && some.len() >= shown, "{max_bytes}: {} messages", some.len());
        shown = some.len();
    }
    assert!(shown >= 8, "{shown}");
}
