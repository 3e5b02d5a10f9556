//! An accepted task can be found, by its whole name and by its owner only.

use bytes::Bytes;
use engine::{
    Clock,
    ids::{Tag, TaskNo},
    store::{Change, Committed, Conflict, ListQuery, Lookup, MessageKey, NotCommitted, Visibility, Work},
};
use protocol::{Dialect, TaskState};

use super::{
    bench::Bench,
    samples::{
        accept, accepted, at, foreign_scope, found, log, lookup, number, scope, tag, task, told, words,
    },
};

on_every_database![
    an_accepted_task_is_found_as_it_was_accepted,
    a_name_with_another_tag_finds_nothing,
    a_task_of_another_scope_does_not_exist,
    an_unknown_name_finds_nothing,
    work_that_ran_has_had_its_first_attempt,
    a_number_is_accepted_once,
    what_nobody_waits_for_is_accepted_all_the_same,
    a_task_is_found_by_the_name_its_client_chose,
    a_name_is_taken_once_by_each_owner,
    of_many_that_take_a_name_at_once_one_does,
    a_name_that_only_looks_like_ours_is_a_clients_name,
];

async fn an_accepted_task_is_found_as_it_was_accepted(bench: &dyn Bench) {
    let store = bench.open();
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
    assert_eq!(words(&log), ["first", "second"]);
    for (read, packed) in log.iter().zip(task(no).log.entries()) {
        assert_eq!((read.kind(), read.v1()), (packed.kind(), packed.v1()));
        assert_eq!(read.rider().unwrap(), packed.rider().unwrap());
    }
}

async fn a_name_with_another_tag_finds_nothing(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    let mut other = tag(no);
    other.0[9] ^= 1;
    assert!(store.find(&scope(), lookup(&*store, no, other)).await.unwrap().is_none());
}

async fn a_task_of_another_scope_does_not_exist(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    let name = lookup(&*store, no, tag(no));
    assert!(store.find(&foreign_scope(), name.clone()).await.unwrap().is_none(), "an owner of nothing");
    accepted(&*store, |task| task.scope = foreign_scope()).await;
    assert!(store.find(&foreign_scope(), name).await.unwrap().is_none(), "an owner of something else");
}

async fn an_unknown_name_finds_nothing(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    let free = number(&*store).await;
    let mut names = vec![lookup(&*store, free, tag(free)), Lookup { ours: None, name: "a client's".into() }];
    names.push(Lookup { ours: None, ..lookup(&*store, no, tag(no)) });
    for name in names {
        assert!(store.find(&scope(), name.clone()).await.unwrap().is_none(), "{name:?}");
    }
}

async fn work_that_ran_has_had_its_first_attempt(bench: &dyn Bench) {
    let store = bench.open();
    let cases = [
        (Work::Due(at(0)), TaskState::Submitted, 0),
        (Work::Held, TaskState::Submitted, 1),
        (Work::Idle, TaskState::Completed, 1),
        (Work::Idle, TaskState::InputRequired, 1),
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

async fn a_number_is_accepted_once(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    let mut thief = task(no);
    thief.scope = foreign_scope();
    thief.state = TaskState::Submitted;
    thief.saved = Some(Bytes::from_static(b"stolen"));
    let met = Conflict { state: Some(TaskState::Working), fence: 1, unanswered: 0 };
    assert_eq!(accept(&*store, thief).await, Err(NotCommitted::Conflict(met)));
    let work = store.work(no).await.unwrap().unwrap();
    assert_eq!((work.scope, work.saved, work.snapshot.row.last_seq), (scope(), None, 2));
    assert!(store.find(&foreign_scope(), lookup(&*store, no, tag(no))).await.unwrap().is_none());
}

async fn what_nobody_waits_for_is_accepted_all_the_same(bench: &dyn Bench) {
    let store = bench.open();
    let no = number(&*store).await;
    drop(store.commit(Change::Accept(Box::new(task(no)))));
    // Closing writes what was handed over.
    let store = bench.reopen(store, &Clock::manual(at(0)));
    assert_eq!(told(&*store, no).await, ["first", "second"]);
}

/// A lookup by a name that a client chose.
fn named(name: &str) -> Lookup {
    Lookup { ours: None, name: name.into() }
}

async fn a_task_is_found_by_the_name_its_client_chose(bench: &dyn Bench) {
    let mut store = bench.open();
    let no = accepted(&*store, |task| {
        task.client_id = Some("t-1".into());
        task.skill = Some("draw".into());
        task.origin = Dialect::Draft;
    })
    .await;
    let others: Vec<_> = Dialect::ALL.into_iter().zip(["a", "b", "c", "d"]).collect();
    for (origin, name) in &others {
        accepted(&*store, |task| {
            (task.client_id, task.origin) = (Some((*name).into()), *origin);
        })
        .await;
    }
    for _ in 0..2 {
        let row = store.find(&scope(), named("t-1")).await.unwrap().unwrap().row;
        assert_eq!((row.no, row.tag, row.client_id), (no, tag(no), Some("t-1".into())));
        assert_eq!((row.skill.as_deref(), row.origin, row.turn), (Some("draw"), Dialect::Draft, 1));
        let work = store.work(no).await.unwrap().unwrap().snapshot.row;
        assert_eq!((work.client_id, work.skill), (Some("t-1".into()), Some("draw".into())));
        for (origin, name) in &others {
            let row = store.find(&scope(), named(name)).await.unwrap().unwrap().row;
            assert_eq!((row.origin, row.skill), (*origin, None));
        }
        let query = ListQuery { context: None, state: None, since: None, after: None, size: 100 };
        let listed = store.list(&scope(), query).await.unwrap().tasks;
        assert!(listed.iter().any(|task| task.row.no == no && task.row.client_id == Some("t-1".into())));
        for unknown in ["T-1", "t-1 ", "t", ""] {
            assert!(store.find(&scope(), named(unknown)).await.unwrap().is_none(), "{unknown:?}");
        }
        store = bench.reopen(store, &Clock::manual(at(0)));
    }
}

async fn a_name_is_taken_once_by_each_owner(bench: &dyn Bench) {
    let store = bench.open();
    let key = MessageKey { key: [1; 16], hash: [1; 16] };
    let first = accepted(&*store, |task| task.client_id = Some("t-1".into())).await;
    let mut second = task(number(&*store).await);
    second.client_id = Some("t-1".into());
    (second.key, second.saved) = (Some(key), Some(Bytes::from_static(b"lost")));
    let no = second.no;
    let refused = accept(&*store, second).await;
    assert!(matches!(refused, Err(NotCommitted::Conflict(_))), "{refused:?}");
    // Nothing of it is there, not even its key.
    assert!(store.work(no).await.unwrap().is_none());
    assert!(log(&*store, no).await.is_empty());
    let query = ListQuery { context: None, state: None, since: None, after: None, size: 100 };
    assert_eq!(store.list(&scope(), query).await.unwrap().total, 1);
    accepted(&*store, |task| task.key = Some(key)).await;
    // Another owner's name is another name.
    let theirs = accepted(&*store, |task| {
        (task.client_id, task.scope) = (Some("t-1".into()), foreign_scope());
    })
    .await;
    for (scope, no) in [(scope(), first), (foreign_scope(), theirs)] {
        assert_eq!(store.find(&scope, named("t-1")).await.unwrap().unwrap().row.no, no);
    }
}

async fn of_many_that_take_a_name_at_once_one_does(bench: &dyn Bench) {
    let store = bench.open();
    for round in 0..10 {
        let name = format!("t-{round}");
        let mut tasks = Vec::new();
        for _ in 0..10 {
            tasks.push(number(&*store).await);
        }
        let stalled = (round % 2 == 0).then(|| bench.stall());
        let receipts: Vec<_> = tasks
            .iter()
            .map(|no| {
                let mut new = task(*no);
                new.client_id = Some(name.as_str().into());
                store.commit(Change::Accept(Box::new(new)))
            })
            .collect();
        drop(stalled);
        for (place, receipt) in receipts.into_iter().enumerate() {
            let result = receipt.await;
            assert_eq!(result.is_ok(), place == 0, "{place}: {result:?}");
            assert!(place == 0 || matches!(result, Err(NotCommitted::Conflict(_))), "{result:?}");
        }
        assert_eq!(store.find(&scope(), named(&name)).await.unwrap().unwrap().row.no, tasks[0]);
    }
}

async fn a_name_that_only_looks_like_ours_is_a_clients_name(bench: &dyn Bench) {
    let store = bench.open();
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
