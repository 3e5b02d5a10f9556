//! A store that failed to write says so and never writes again; what it had acknowledged is all there is.

use bytes::Bytes;
use engine::{
    Clock,
    ids::TaskNo,
    store::{Accept, Change, NotCommitted, Receipt, Step, StoreError},
};
use futures_util::FutureExt as _;

use super::{
    bench::Bench,
    samples::{
        accept, accepted, advance, at, hand_over, lookup, number, report, save, scope, step, tag, task, told,
    },
};

on_every_database![
    a_failed_write_ends_the_writing,
    nothing_of_a_failed_write_is_found_later,
    a_store_that_can_write_has_not_failed,
];

fn unavailable<T>(result: &Result<T, NotCommitted>) -> bool {
    matches!(result, Err(NotCommitted::Unavailable(_)))
}

async fn a_failed_write_ends_the_writing(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    let failed = store.failed();
    bench.spoil();
    assert!(unavailable(&advance(&*store, save(report(no, &["lost"]), "lost")).await));
    assert!(!failed.await.is_empty(), "the reason is told");
    assert!(!store.failed().await.is_empty(), "also to whoever asks later");

    // The disk is well again, but nobody knows what it has done with what it was given.
    bench.mend();
    assert!(unavailable(&advance(&*store, report(no, &["later"])).await));
    let new = task(TaskNo(no.0 + 1));
    assert!(unavailable(&accept(&*store, new).await));
    assert!(matches!(store.reserve(1).await, Err(StoreError::Unavailable(_))));

    let store = bench.reopen(store, &Clock::manual(at(0)));
    assert_eq!(told(&*store, no).await, ["first", "second"]);
    advance(&*store, step(no, Step::Claim)).await.unwrap();
}

async fn nothing_of_a_failed_write_is_found_later(bench: &dyn Bench) {
    let store = bench.open();
    let kept = accepted(&*store, |_| {}).await;
    let fresh = [number(&*store).await, number(&*store).await, number(&*store).await];
    let accept_new = |no: TaskNo, saved: Option<Bytes>| {
        store.commit(Change::Accept(Box::new(Accept { saved, ..task(no) })))
    };
    bench.spoil();
    let stalled = bench.stall();
    // One transaction, or two: some good changes go before the bad ones, some behind.
    let mut receipts: Vec<(&str, Receipt)> = vec![
        ("report", hand_over(&*store, report(kept, &["third"]))),
        ("accept", accept_new(fresh[0], None)),
        ("bad accept", accept_new(fresh[1], Some(Bytes::from_static(b"lost")))),
        ("bad report", hand_over(&*store, save(report(kept, &["fourth"]), "lost"))),
        ("late accept", accept_new(fresh[2], None)),
    ];
    drop(stalled);
    let mut committed = Vec::new();
    for (name, receipt) in receipts.drain(..) {
        match receipt.await {
            Ok(_) => committed.push(name),
            Err(NotCommitted::Unavailable(_)) => {}
            Err(error) => panic!("{name}: {error:?}"),
        }
    }
    store.failed().await;
    assert!(committed.iter().all(|name| ["report", "accept"].contains(name)), "{committed:?}");

    bench.mend();
    let store = bench.reopen(store, &Clock::manual(at(0)));
    let log = told(&*store, kept).await;
    assert_eq!(log.contains(&"third".to_owned()), committed.contains(&"report"), "{log:?}");
    assert!(!log.contains(&"fourth".to_owned()), "{log:?}");
    assert_eq!(store.work(kept).await.unwrap().unwrap().saved, None);
    for (no, name) in fresh.into_iter().zip(["accept", "bad accept", "late accept"]) {
        let there = store.find(&scope(), lookup(&*store, no, tag(no))).await.unwrap().is_some();
        assert_eq!(there, committed.contains(&name), "{name}");
    }
}

async fn a_store_that_can_write_has_not_failed(bench: &dyn Bench) {
    let store = bench.open();
    let failed = store.failed();
    accepted(&*store, |_| {}).await;
    assert!(store.failed().now_or_never().is_none());
    drop(store);
    assert!(failed.now_or_never().is_none(), "closing is no failure");
}
