//! A task starts a context or joins one; context ids belong to the scope.

use engine::{
    Clock, Scope, Store,
    ids::{Tag, TaskNo},
    store::{Change, ContextLookup, ContextRow, ListQuery, NewContext, View},
};
use protocol::ContextId;

use super::{
    samples::{accepted, at, foreign_scope, found, lookup, number, scope, tag, task},
    test_database::TestDatabase,
};

on_every_database![
    task_without_context_starts_its_own,
    unknown_client_id_starts_a_context,
    known_client_id_finds_its_context,
    joined_context_is_the_one_that_was_started,
    concurrent_tasks_with_one_context_id_share_it,
    context_id_of_another_scope_is_unknown,
    generated_looking_id_can_be_client_chosen,
    contexts_survive_a_restart,
];

fn by_name(name: &str) -> ContextLookup {
    ContextLookup { ours: None, name: name.into() }
}

/// A lookup by the id that the store generates for a context.
fn ours(store: &dyn Store, first: TaskNo, tag: Tag) -> ContextLookup {
    let name = store.ids().context(first, tag);
    ContextLookup { ours: store.ids().parse_context(&name), name }
}

async fn context(store: &dyn Store, scope: &Scope, lookup: ContextLookup) -> Option<ContextRow> {
    store.context(scope, lookup).await.unwrap()
}

async fn context_of(store: &dyn Store, no: TaskNo) -> ContextRow {
    found(store, no).await.row.context
}

/// The tasks that a list of a context contains, oldest first.
async fn members(store: &dyn Store, lookup: ContextLookup) -> Vec<TaskNo> {
    let query = ListQuery {
        context: Some(lookup),
        state: None,
        since: None,
        after: None,
        size: 100,
        view: View::default(),
    };
    let page = store.list(&scope(), query).await.unwrap();
    page.tasks.iter().rev().map(|snapshot| snapshot.row.no).collect()
}

async fn task_without_context_starts_its_own(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let begun = ContextRow { first: no, tag: store.ids().context_tag(tag(no)), name: None };
    assert_eq!(context_of(&*store, no).await, begun);
    assert_eq!(context(&*store, &scope(), ours(&*store, no, begun.tag)).await, Some(begun.clone()));
    // Not in another scope, and not with another tag: a task's own tag does not identify its context.
    assert_eq!(context(&*store, &foreign_scope(), ours(&*store, no, begun.tag)).await, None);
    assert_eq!(context(&*store, &scope(), ours(&*store, no, tag(no))).await, None);
    let free = number(&*store).await;
    assert_eq!(context(&*store, &scope(), ours(&*store, free, begun.tag)).await, None);
}

async fn unknown_client_id_starts_a_context(database: &dyn TestDatabase) {
    let store = database.open();
    assert_eq!(context(&*store, &scope(), by_name("chat")).await, None);
    let no = accepted(&*store, |task| task.context = NewContext::Named("chat".into())).await;
    let row = context_of(&*store, no).await;
    assert_eq!((row.first, row.name.as_ref().map(ContextId::as_str)), (no, Some("chat")));
    let known = context(&*store, &scope(), by_name("chat")).await.unwrap();
    assert_eq!((known.first, known.name), (no, Some("chat".into())));
    // It is found only by the client's id.
    assert_eq!(context(&*store, &scope(), ours(&*store, no, store.ids().context_tag(tag(no)))).await, None);
    assert_eq!(context(&*store, &scope(), by_name("Chat")).await, None);
}

async fn known_client_id_finds_its_context(database: &dyn TestDatabase) {
    let store = database.open();
    let first = accepted(&*store, |task| task.context = NewContext::Named("chat".into())).await;
    let known = context(&*store, &scope(), by_name("chat")).await.unwrap();
    let joined = accepted(&*store, |task| task.context = NewContext::Joined(known)).await;
    // A task that names the context instead of joining it, as when the lookup preceded the first task, joins it too.
    let late = accepted(&*store, |task| task.context = NewContext::Named("chat".into())).await;
    for no in [joined, late] {
        let row = context_of(&*store, no).await;
        assert_eq!((row.first, row.name), (first, Some("chat".into())), "{no:?}");
    }
    assert_eq!(context(&*store, &scope(), by_name("chat")).await.unwrap().first, first);
    assert_eq!(members(&*store, by_name("chat")).await, [first, joined, late]);
}

async fn joined_context_is_the_one_that_was_started(database: &dyn TestDatabase) {
    let store = database.open();
    let first = accepted(&*store, |_| {}).await;
    let begun = context_of(&*store, first).await;
    let joined = accepted(&*store, |task| task.context = NewContext::Joined(begun.clone())).await;
    assert_eq!(context_of(&*store, joined).await, begun);
    let known = context(&*store, &scope(), ours(&*store, first, begun.tag)).await.unwrap();
    assert_eq!(known, begun);
    let third = accepted(&*store, |task| task.context = NewContext::Joined(known)).await;
    accepted(&*store, |_| {}).await;
    assert_eq!(members(&*store, ours(&*store, first, begun.tag)).await, [first, joined, third]);
    // Joined tasks carry the tag: another tag finds nothing, and a joined task starts no context of its own.
    assert_eq!(context(&*store, &scope(), ours(&*store, first, tag(first))).await, None);
    let own = ours(&*store, joined, store.ids().context_tag(tag(joined)));
    assert_eq!(context(&*store, &scope(), own).await, None);
}

async fn concurrent_tasks_with_one_context_id_share_it(database: &dyn TestDatabase) {
    let store = database.open();
    for round in 0..10 {
        let name = format!("chat {round}");
        let tasks = [number(&*store).await, number(&*store).await, number(&*store).await];
        let blocked = (round % 2 == 0).then(|| database.block_writes());
        // The task with the largest number is committed first: the order of commits decides, not of numbers.
        let receipts = [2, 0, 1].map(|at| {
            let mut new = task(tasks[at]);
            new.context = NewContext::Named(name.as_str().into());
            store.commit(Change::Accept(Box::new(new)))
        });
        drop(blocked);
        for receipt in receipts {
            receipt.await.unwrap();
        }
        for no in tasks {
            let row = context_of(&*store, no).await;
            assert_eq!((row.first, row.name), (tasks[2], Some(name.as_str().into())), "{no:?} of {tasks:?}");
        }
        assert_eq!(context(&*store, &scope(), by_name(&name)).await.unwrap().first, tasks[2]);
        assert_eq!(members(&*store, by_name(&name)).await, tasks);
    }
}

async fn context_id_of_another_scope_is_unknown(database: &dyn TestDatabase) {
    let store = database.open();
    let named = || NewContext::Named("chat".into());
    let mine = accepted(&*store, |task| task.context = named()).await;
    assert_eq!(context(&*store, &foreign_scope(), by_name("chat")).await, None);
    let theirs = accepted(&*store, |task| {
        task.context = named();
        task.scope = foreign_scope();
    })
    .await;
    assert_eq!(context(&*store, &foreign_scope(), by_name("chat")).await.unwrap().first, theirs);
    assert_eq!(context(&*store, &scope(), by_name("chat")).await.unwrap().first, mine);
    let their_row =
        store.find(&foreign_scope(), lookup(&*store, theirs, tag(theirs))).await.unwrap().unwrap();
    assert_eq!(their_row.row.context.first, theirs);
    assert_eq!(members(&*store, by_name("chat")).await, [mine]);
}

async fn generated_looking_id_can_be_client_chosen(database: &dyn TestDatabase) {
    let store = database.open();
    let elsewhere = ours(&*store, TaskNo(77), Tag([9; 10]));
    assert!(elsewhere.ours.is_some());
    assert_eq!(context(&*store, &scope(), elsewhere.clone()).await, None);
    let no = accepted(&*store, |task| task.context = NewContext::Named(elsewhere.name.clone())).await;
    let known = context(&*store, &scope(), elsewhere.clone()).await.unwrap();
    assert_eq!((known.first, known.name), (no, Some(elsewhere.name)));
}

async fn contexts_survive_a_restart(database: &dyn TestDatabase) {
    let store = database.open();
    let own = accepted(&*store, |_| {}).await;
    let begun = context_of(&*store, own).await;
    let named = accepted(&*store, |task| task.context = NewContext::Named("chat".into())).await;
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(context(&*store, &scope(), ours(&*store, own, begun.tag)).await, Some(begun));
    let late = accepted(&*store, |task| task.context = NewContext::Named("chat".into())).await;
    assert_eq!(context_of(&*store, late).await.first, named);
}
