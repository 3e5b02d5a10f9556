//! An accepted task is found by its complete id, and only in its scope.

use engine::{
    Clock, Origin,
    ids::{Tag, TaskNo},
    store::{
        Change, Committed, Conflict, ListQuery, Lookup, MessageKey, NotCommitted, SavedState, View,
        Visibility, WorkState,
    },
};
use protocol::{Dialect, TaskState};

use super::{
    samples::{
        accept, accepted, at, foreign_scope, found, log, log_texts, lookup, number, scope, tag, task, texts,
    },
    test_database::TestDatabase,
};

on_every_database![
    accepted_task_is_found_unchanged,
    id_with_another_tag_finds_nothing,
    task_of_another_scope_is_not_found,
    unknown_id_finds_nothing,
    work_that_ran_has_used_its_first_attempt,
    task_number_is_accepted_once,
    change_is_committed_when_its_receipt_is_dropped,
    task_is_found_by_its_client_chosen_id,
    client_chosen_id_is_unique_per_scope,
    one_of_many_concurrent_accepts_gets_the_id,
    generated_looking_id_can_be_client_chosen,
];

async fn accepted_task_is_found_unchanged(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| {
        task.status_at = at(1_234);
        task.visibility = Visibility::Undecided;
    })
    .await;
    let snapshot = found(&*store, no).await;
    let row = &snapshot.row;
    assert_eq!((row.no, row.tag, row.client_id.as_ref()), (no, tag(no), None));
    assert_eq!((row.state, row.status_at), (TaskState::Working, at(1_234)));
    assert_eq!((row.last_seq, row.deaths, row.visibility), (2, 0, Visibility::Undecided));
    let log = log(&*store, no).await;
    assert_eq!(texts(&log), ["first", "second"]);
    for (read, packed) in log.iter().zip(task(no).log.entries()) {
        assert_eq!((read.kind(), read.v1()), (packed.kind(), packed.v1()));
        assert_eq!(read.user_message().unwrap(), packed.user_message().unwrap());
    }
}

async fn id_with_another_tag_finds_nothing(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let mut other = tag(no);
    other.0[9] ^= 1;
    assert!(store.find(&scope(), lookup(&*store, no, other)).await.unwrap().is_none());
}

async fn task_of_another_scope_is_not_found(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let name = lookup(&*store, no, tag(no));
    assert!(store.find(&foreign_scope(), name.clone()).await.unwrap().is_none(), "a scope without tasks");
    accepted(&*store, |task| task.scope = foreign_scope()).await;
    assert!(store.find(&foreign_scope(), name).await.unwrap().is_none(), "a scope with another task");
}

async fn unknown_id_finds_nothing(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let free = number(&*store).await;
    let mut names =
        vec![lookup(&*store, free, tag(free)), Lookup { ours: None, name: "client-chosen".into() }];
    names.push(Lookup { ours: None, ..lookup(&*store, no, tag(no)) });
    for name in names {
        assert!(store.find(&scope(), name.clone()).await.unwrap().is_none(), "{name:?}");
    }
}

async fn work_that_ran_has_used_its_first_attempt(database: &dyn TestDatabase) {
    let store = database.open();
    let cases = [
        (WorkState::Due(at(0)), TaskState::Submitted, 0),
        (WorkState::Held, TaskState::Submitted, 1),
        (WorkState::Idle, TaskState::Completed, 1),
        (WorkState::Idle, TaskState::InputRequired, 1),
    ];
    for (work, state, ran) in cases {
        let mut new = task(number(&*store).await);
        (new.work, new.state) = (work, state);
        let no = new.no;
        let committed = accept(&*store, new).await.unwrap();
        let row = found(&*store, no).await.row;
        let size = row.size;
        assert_eq!(committed, Committed { last_seq: 2, fence: ran, attempt: ran, size }, "{work:?}");
        assert_eq!((row.state, row.fence, row.attempt), (state, ran, ran), "{work:?}");
    }
}

async fn task_number_is_accepted_once(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let mut duplicate = task(no);
    duplicate.scope = foreign_scope();
    duplicate.state = TaskState::Submitted;
    duplicate.saved = Some(SavedState::new(None, "rejected"));
    let met = Conflict { state: Some(TaskState::Working), fence: 1, unanswered: 0 };
    assert_eq!(accept(&*store, duplicate).await, Err(NotCommitted::Conflict(met)));
    let work = store.work(no).await.unwrap().unwrap();
    assert_eq!((work.scope, work.saved, work.row.last_seq), (scope(), None, 2));
    assert!(store.find(&foreign_scope(), lookup(&*store, no, tag(no))).await.unwrap().is_none());
}

async fn change_is_committed_when_its_receipt_is_dropped(database: &dyn TestDatabase) {
    let store = database.open();
    let no = number(&*store).await;
    drop(store.commit(Change::Accept(Box::new(task(no)))));
    // Closing the store commits what is queued.
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(log_texts(&*store, no).await, ["first", "second"]);
}

/// A lookup by a client-chosen id.
fn named(name: &str) -> Lookup {
    Lookup { ours: None, name: name.into() }
}

async fn task_is_found_by_its_client_chosen_id(database: &dyn TestDatabase) {
    let mut store = database.open();
    let no = accepted(&*store, |task| {
        task.client_id = Some("t-1".into());
        task.skill = Some("draw".into());
        task.origin = Dialect::Draft.into();
    })
    .await;
    let origins = Dialect::ALL.map(Origin::A2a).into_iter().chain([Origin::Mcp, Origin::Run]);
    let others: Vec<_> = origins.zip(["a", "b", "c", "d", "e", "f"]).collect();
    for (origin, name) in &others {
        accepted(&*store, |task| {
            (task.client_id, task.origin) = (Some((*name).into()), *origin);
        })
        .await;
    }
    for _ in 0..2 {
        let row = store.find(&scope(), named("t-1")).await.unwrap().unwrap().row;
        assert_eq!((row.no, row.tag, row.client_id), (no, tag(no), Some("t-1".into())));
        assert_eq!((row.skill.as_deref(), row.origin, row.turn), (Some("draw"), Dialect::Draft.into(), 1));
        let work = store.work(no).await.unwrap().unwrap().row;
        assert_eq!((work.client_id, work.skill), (Some("t-1".into()), Some("draw".into())));
        for (origin, name) in &others {
            let row = store.find(&scope(), named(name)).await.unwrap().unwrap().row;
            assert_eq!((row.origin, row.skill), (*origin, None));
        }
        let query = ListQuery {
            context: None,
            state: None,
            since: None,
            after: None,
            size: 100,
            view: View::default(),
        };
        let listed = store.list(&scope(), query).await.unwrap().tasks;
        assert!(listed.iter().any(|task| task.row.no == no && task.row.client_id == Some("t-1".into())));
        for unknown in ["T-1", "t-1 ", "t", ""] {
            assert!(store.find(&scope(), named(unknown)).await.unwrap().is_none(), "{unknown:?}");
        }
        store = database.reopen(store, &Clock::manual(at(0)));
    }
}

async fn client_chosen_id_is_unique_per_scope(database: &dyn TestDatabase) {
    let store = database.open();
    let key = MessageKey { key: [1; 16], hash: [1; 16] };
    let first = accepted(&*store, |task| task.client_id = Some("t-1".into())).await;
    let mut second = task(number(&*store).await);
    second.client_id = Some("t-1".into());
    (second.key, second.saved) = (Some(key), Some(SavedState::new(None, "lost")));
    let no = second.no;
    let refused = accept(&*store, second).await;
    assert!(matches!(refused, Err(NotCommitted::Conflict(_))), "{refused:?}");
    // A rejected accept leaves nothing, not even its key.
    assert!(store.work(no).await.unwrap().is_none());
    assert!(log(&*store, no).await.is_empty());
    let query =
        ListQuery { context: None, state: None, since: None, after: None, size: 100, view: View::default() };
    assert_eq!(store.list(&scope(), query).await.unwrap().total, 1);
    accepted(&*store, |task| task.key = Some(key)).await;
    // The same id in another scope is a different task.
    let theirs = accepted(&*store, |task| {
        (task.client_id, task.scope) = (Some("t-1".into()), foreign_scope());
    })
    .await;
    for (scope, no) in [(scope(), first), (foreign_scope(), theirs)] {
        assert_eq!(store.find(&scope, named("t-1")).await.unwrap().unwrap().row.no, no);
    }
}

async fn one_of_many_concurrent_accepts_gets_the_id(database: &dyn TestDatabase) {
    let store = database.open();
    for round in 0..10 {
        let name = format!("t-{round}");
        let mut tasks = Vec::new();
        for _ in 0..10 {
            tasks.push(number(&*store).await);
        }
        let blocked = (round % 2 == 0).then(|| database.block_writes());
        let receipts: Vec<_> = tasks
            .iter()
            .map(|no| {
                let mut new = task(*no);
                new.client_id = Some(name.as_str().into());
                store.commit(Change::Accept(Box::new(new)))
            })
            .collect();
        drop(blocked);
        for (index, receipt) in receipts.into_iter().enumerate() {
            let result = receipt.await;
            assert_eq!(result.is_ok(), index == 0, "{index}: {result:?}");
            assert!(index == 0 || matches!(result, Err(NotCommitted::Conflict(_))), "{result:?}");
        }
        assert_eq!(store.find(&scope(), named(&name)).await.unwrap().unwrap().row.no, tasks[0]);
    }
}

async fn generated_looking_id_can_be_client_chosen(database: &dyn TestDatabase) {
    let store = database.open();
    let ours = accepted(&*store, |_| {}).await;
    let mut other = tag(ours);
    other.0[9] ^= 1;
    for lookalike in [lookup(&*store, TaskNo(77_777), Tag([9; 10])), lookup(&*store, ours, other)] {
        assert!(lookalike.ours.is_some());
        let no = accepted(&*store, |task| task.client_id = Some(lookalike.name.clone())).await;
        assert_eq!(store.find(&scope(), lookalike).await.unwrap().unwrap().row.no, no);
    }
    assert_eq!(found(&*store, ours).await.row.client_id, None);
}
