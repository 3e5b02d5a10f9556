//! An accepted task can be found, by its whole name and by its owner only.

use bytes::Bytes;
use engine::{
    Clock,
    store::{Change, Committed, Conflict, Lookup, NotCommitted, Visibility, Work},
};
use protocol::TaskState;

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
