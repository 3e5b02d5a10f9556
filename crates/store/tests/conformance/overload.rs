//! Bounds of the writer: it rejects new messages while too much is queued, and changes that SQLite cannot hold.

use engine::{
    log::Log,
    store::{Advance, NotCommitted, Receipt, Step},
};
use protocol::TaskState;

use super::{
    samples::{
        accept, accepted, advance, artifact, log_texts, number, queue_advance, report, step, task,
        with_status,
    },
    test_database::{Sqlite, TestDatabase},
};

on_every_database![new_messages_are_rejected_while_too_much_is_queued,];

async fn new_messages_are_rejected_while_too_much_is_queued(database: &dyn TestDatabase) {
    let store = database.open();
    let open = accepted(&*store, |_| {}).await;
    let new = number(&*store).await;
    // They have lost their lease, so that nothing is written for them.
    let large = Log::pack([artifact(&"x".repeat(14 << 20))]);
    let stale = || Advance { log: large.clone(), ..step(open, Step::Report { fence: 7 }) };
    let blocked = database.block_writes();
    let queued: Vec<Receipt> = (0..20).map(|_| queue_advance(&*store, stale())).collect();
    assert_eq!(accept(&*store, task(new)).await, Err(NotCommitted::Overloaded));
    let message = step(open, Step::QueueMessage);
    assert_eq!(advance(&*store, message).await, Err(NotCommitted::Overloaded));
    // What running work records is never rejected.
    let reported = queue_advance(&*store, report(open, &["third"]));
    let cancelled = with_status(open, Step::Cancel, TaskState::Canceled, "fourth");
    let cancelled = queue_advance(&*store, cancelled);
    drop(blocked);
    for receipt in queued {
        assert!(matches!(receipt.await, Err(NotCommitted::Conflict(_))));
    }
    reported.await.unwrap();
    cancelled.await.unwrap();
    assert_eq!(log_texts(&*store, open).await, ["first", "second", "third", "fourth"]);
    accept(&*store, task(new)).await.unwrap();
}

/// The highest sequence number of a segment key.
const MAX_SEQ: i64 = (1 << 24) - 1;

#[tokio::test]
async fn task_with_the_most_entries_can_only_end() {
    let database = Sqlite::new();
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let almost_full = "UPDATE tasks SET last_seq = ?2 WHERE n = ?1";
    database.raw_connection().execute(almost_full, [no.0, MAX_SEQ - 1_025]).unwrap();
    let too_large =
        |result| matches!(result, Err(NotCommitted::TooLarge(reason)) if reason.contains("16776191"));
    assert!(too_large(advance(&*store, report(no, &["one", "more"])).await));
    let committed = advance(&*store, report(no, &["last"])).await.unwrap();
    assert_eq!(committed.last_seq, (MAX_SEQ - 1_024) as u64);
    assert!(too_large(advance(&*store, report(no, &["more"])).await));
    assert!(too_large(advance(&*store, step_with_entry(no, Step::QueueMessage)).await));
    // A guard that fails for another reason is a conflict as before.
    let stale = advance(&*store, step(no, Step::Report { fence: 7 })).await;
    assert!(matches!(stale, Err(NotCommitted::Conflict(_))), "{stale:?}");
    let end = with_status(no, Step::Finish { fence: 1 }, TaskState::Failed, "too many entries");
    assert_eq!(advance(&*store, end).await.unwrap().last_seq, (MAX_SEQ - 1_023) as u64);
    accepted(&*store, |_| {}).await;
}

fn step_with_entry(no: engine::ids::TaskNo, arrow: Step) -> Advance {
    Advance { log: Log::pack([artifact("more")]), ..step(no, arrow) }
}
