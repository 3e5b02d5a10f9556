//! What a runner needs to take up a task: whose it is, what happened, and what its agent saved last.

use bytes::Bytes;
use engine::{Clock, Store, ids::TaskNo, store::Step};

use super::{
    bench::Bench,
    samples::{accepted, advance, at, foreign_scope, log_of, number, report, save, step, words},
};

on_every_database![
    the_last_thing_saved_is_kept_over_attempts_and_processes,
    a_task_is_taken_up_with_its_owner_and_its_log,
];

async fn saved(store: &dyn Store, no: TaskNo) -> Option<Bytes> {
    store.work(no).await.unwrap().unwrap().saved
}

async fn the_last_thing_saved_is_kept_over_attempts_and_processes(bench: &dyn Bench) {
    let store = bench.open();
    let none = accepted(&*store, |_| {}).await;
    assert_eq!(saved(&*store, none).await, None);
    let no = accepted(&*store, |task| task.saved = Some(Bytes::from_static(b"one"))).await;
    assert_eq!(saved(&*store, no).await.as_deref(), Some(b"one".as_slice()));
    advance(&*store, save(step(no, Step::Report { fence: 1 }), "two")).await.unwrap();
    advance(&*store, report(no, &["a change that saves nothing"])).await.unwrap();
    assert_eq!(saved(&*store, no).await.as_deref(), Some(b"two".as_slice()));
    let store = bench.reopen(store, &Clock::manual(at(0)));
    advance(&*store, step(no, Step::Claim)).await.unwrap();
    assert_eq!(saved(&*store, no).await.as_deref(), Some(b"two".as_slice()));
    advance(&*store, save(step(no, Step::Report { fence: 2 }), "")).await.unwrap();
    assert_eq!(saved(&*store, no).await.as_deref(), Some(b"".as_slice()), "nothing, said on purpose");
    assert_eq!(saved(&*store, none).await, None);
}

async fn a_task_is_taken_up_with_its_owner_and_its_log(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |task| task.scope = foreign_scope()).await;
    advance(&*store, report(no, &["third"])).await.unwrap();
    let work = store.work(no).await.unwrap().unwrap();
    assert_eq!((work.scope, work.snapshot.row.no, work.snapshot.row.last_seq), (foreign_scope(), no, 3));
    assert_eq!(words(&log_of(&*store, &foreign_scope(), no).await), ["first", "second", "third"]);
    let free = number(&*store).await;
    assert!(store.work(free).await.unwrap().is_none());
}
