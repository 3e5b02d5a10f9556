//! After a failed write the store reports the failure and never writes again; it contains exactly what it
//! acknowledged.

use engine::{
    Clock,
    ids::TaskNo,
    store::{Accept, Change, NotCommitted, Receipt, SavedState, Step, StoreError},
};
use futures_util::FutureExt as _;

use super::{
    samples::{
        accept, accepted, advance, at, log_texts, lookup, number, queue_advance, report, save, scope, step,
        tag, task,
    },
    test_database::TestDatabase,
};

on_every_database![
    failed_write_stops_the_writer,
    failed_write_leaves_nothing,
    working_store_reports_no_failure,
];

fn unavailable<T>(result: &Result<T, NotCommitted>) -> bool {
    matches!(result, Err(NotCommitted::Unavailable(_)))
}

async fn failed_write_stops_the_writer(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let failed = store.failed();
    database.fail_saves();
    assert!(unavailable(&advance(&*store, save(report(no, &["lost"]), "lost")).await));
    assert!(!failed.await.is_empty(), "the reason is reported");
    assert!(!store.failed().await.is_empty(), "also to later callers");

    // The disk works again, but what it did with the failed write is unknown.
    database.restore_saves();
    assert!(unavailable(&advance(&*store, report(no, &["later"])).await));
    let new = task(TaskNo(no.0 + 1));
    assert!(unavailable(&accept(&*store, new).await));
    assert!(matches!(store.reserve(1).await, Err(StoreError::Unavailable(_))));

    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(log_texts(&*store, no).await, ["first", "second"]);
    advance(&*store, step(no, Step::Claim { probation: false })).await.unwrap();
}

async fn failed_write_leaves_nothing(database: &dyn TestDatabase) {
    let store = database.open();
    let kept = accepted(&*store, |_| {}).await;
    let fresh = [number(&*store).await, number(&*store).await, number(&*store).await];
    let accept_new = |no: TaskNo, saved: Option<SavedState>| {
        store.commit(Change::Accept(Box::new(Accept { saved, ..task(no) })))
    };
    database.fail_saves();
    let blocked = database.block_writes();
    // One transaction, or two: some good changes precede the failing ones, some follow.
    let mut receipts: Vec<(&str, Receipt)> = vec![
        ("report", queue_advance(&*store, report(kept, &["third"]))),
        ("accept", accept_new(fresh[0], None)),
        ("bad accept", accept_new(fresh[1], Some(SavedState::new(None, "lost")))),
        ("bad report", queue_advance(&*store, save(report(kept, &["fourth"]), "lost"))),
        ("late accept", accept_new(fresh[2], None)),
    ];
    drop(blocked);
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

    database.restore_saves();
    let store = database.reopen(store, &Clock::manual(at(0)));
    let log = log_texts(&*store, kept).await;
    assert_eq!(log.contains(&"third".to_owned()), committed.contains(&"report"), "{log:?}");
    assert!(!log.contains(&"fourth".to_owned()), "{log:?}");
    assert_eq!(store.work(kept).await.unwrap().unwrap().saved, None);
    for (no, name) in fresh.into_iter().zip(["accept", "bad accept", "late accept"]) {
        let there = store.find(&scope(), lookup(&*store, no, tag(no))).await.unwrap().is_some();
        assert_eq!(there, committed.contains(&name), "{name}");
    }
}

async fn working_store_reports_no_failure(database: &dyn TestDatabase) {
    let store = database.open();
    let failed = store.failed();
    accepted(&*store, |_| {}).await;
    assert!(store.failed().now_or_never().is_none());
    drop(store);
    assert!(failed.now_or_never().is_none(), "closing is not a failure");
}
