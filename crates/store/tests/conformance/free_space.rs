//! A store with little free space refuses messages of clients and nothing else.

use engine::{
    Store as _,
    store::{Accept, MessageKey, NotCommitted, Step},
};
use protocol::TaskState;

use super::{
    samples::{accept, accepted, advance, ended, log_texts, number, report, step, task, with_status},
    test_database::{Sqlite, TestDatabase as _},
};

#[tokio::test]
async fn messages_are_refused_and_running_work_goes_on() {
    let database = Sqlite::new();
    let store = database.open();
    let key = MessageKey { key: [7; 16], hash: [7; 16] };
    let running = accepted(&*store, |task| task.key = Some(key)).await;
    assert!(!store.is_low_on_space());
    drop(store);

    // No file system has so much space.
    let options = a2ad_store::SqliteOptions { min_free_disk: u64::MAX, ..database.options() };
    let clock = engine::Clock::manual(super::samples::at(0));
    let store = a2ad_store::Sqlite::open(&options, engine::Feed::default(), &clock).unwrap();
    assert!(store.is_low_on_space());
    let new = task(number(&store).await);
    assert_eq!(accept(&store, new).await, Err(NotCommitted::LowOnSpace));
    assert_eq!(advance(&store, step(running, Step::QueueMessage)).await, Err(NotCommitted::LowOnSpace));
    // A message that is recorded already is found, so that its response can be repeated.
    let again = Accept { key: Some(key), ..task(number(&store).await) };
    assert!(matches!(accept(&store, again).await, Err(NotCommitted::KeyUsed(_))));
    let claimed = advance(&store, step(running, Step::Claim { probation: false })).await.unwrap();
    let progress =
        engine::store::Advance { step: Step::Report { fence: claimed.fence }, ..report(running, &["third"]) };
    advance(&store, progress).await.unwrap();
    advance(&store, with_status(running, Step::Cancel, TaskState::Canceled, "fourth")).await.unwrap();
    assert_eq!(log_texts(&store, running).await, ["first", "second", "third", "fourth"]);
    assert_eq!(store.purge(vec![ended(&store, running).await], super::samples::at(9)).await.unwrap(), 1);
}
