//! A message with an idempotency key is recorded once; a repetition gets the position of the first.

use engine::{
    Clock, Store,
    ids::TaskNo,
    log::Log,
    store::{Accept, Advance, Conflict, KeyOwner, KeyUsed, MessageKey, NotCommitted, Step},
};
use protocol::TaskState;

use super::{
    samples::{
        accept, accepted, advance, at, foreign_scope, found, interrupted, log_texts, lookup, number,
        queue_advance, report, scope, step, tag, task, user_message, with_status,
    },
    test_database::TestDatabase,
};

on_every_database![
    repeated_first_message_creates_no_second_task,
    repetitions_within_one_commit_are_detected,
    repeated_follow_up_is_recorded_once,
    rejected_message_does_not_use_its_key,
    first_message_of_a_client_named_task_counts_as_its_follow_up,
    keys_survive_a_restart,
];

fn key(name: u8, hash: u8) -> Option<MessageKey> {
    Some(MessageKey { key: [name; 16], hash: [hash; 16] })
}

fn used(task: TaskNo, seq: u64, same: bool) -> NotCommitted {
    NotCommitted::KeyUsed(KeyUsed { task, tag: tag(task), seq, same })
}

async fn keyed(store: &dyn Store, key: Option<MessageKey>) -> Accept {
    Accept { key, ..task(number(store).await) }
}

fn follow_up(no: TaskNo, key: Option<MessageKey>) -> Advance {
    Advance {
        log: Log::pack([user_message(TaskState::Working, "more")]),
        key,
        ..step(no, Step::QueueMessage)
    }
}

async fn repeated_first_message_creates_no_second_task(database: &dyn TestDatabase) {
    let store = database.open();
    let first = keyed(&*store, key(1, 1)).await;
    let no = first.no;
    accept(&*store, first).await.unwrap();
    let again = keyed(&*store, key(1, 1)).await;
    let second = again.no;
    assert_eq!(accept(&*store, again).await, Err(used(no, 1, true)));
    let other = keyed(&*store, key(1, 2)).await;
    assert_eq!(accept(&*store, other).await, Err(used(no, 1, false)), "the same key with other content");
    assert!(store.find(&scope(), lookup(&*store, second, tag(second))).await.unwrap().is_none());
    let another = keyed(&*store, key(2, 1)).await;
    accept(&*store, another).await.unwrap();
    // A key lives as long as its task: also when the task has finished.
    advance(&*store, with_status(no, Step::Finish { fence: 1 }, TaskState::Completed, "done")).await.unwrap();
    let late = keyed(&*store, key(1, 1)).await;
    assert_eq!(accept(&*store, late).await, Err(used(no, 1, true)));
}

async fn repetitions_within_one_commit_are_detected(database: &dyn TestDatabase) {
    let store = database.open();
    let tasks = [number(&*store).await, number(&*store).await, number(&*store).await];
    let blocked = database.block_writes();
    let receipts = tasks.map(|no| {
        let new = Accept { key: key(1, 1), ..task(no) };
        store.commit(engine::store::Change::Accept(Box::new(new)))
    });
    let follow_ups = [(); 2].map(|()| queue_advance(&*store, follow_up(tasks[0], key(2, 2))));
    drop(blocked);
    let [first, second, third] = receipts;
    first.await.unwrap();
    for repeated in [second, third] {
        assert_eq!(repeated.await, Err(used(tasks[0], 1, true)));
    }
    let [one, other] = follow_ups;
    assert_eq!(one.await.unwrap().last_seq, 3);
    assert_eq!(other.await, Err(used(tasks[0], 3, true)));
}

async fn repeated_follow_up_is_recorded_once(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let known = |key: MessageKey| store.turn_key(&scope(), KeyOwner::Task(no), key);
    let name = key(1, 1).unwrap();
    assert_eq!(known(name).await.unwrap(), None);
    advance(&*store, follow_up(no, Some(name))).await.unwrap();
    advance(&*store, report(no, &["fourth"])).await.unwrap();
    assert_eq!(advance(&*store, follow_up(no, Some(name))).await, Err(used(no, 3, true)));
    assert_eq!(advance(&*store, follow_up(no, key(1, 9))).await, Err(used(no, 3, false)));
    let met = KeyUsed { task: no, tag: tag(no), seq: 3, same: true };
    assert_eq!(known(name).await.unwrap(), Some(met));
    assert_eq!(known(key(1, 9).unwrap()).await.unwrap(), Some(KeyUsed { same: false, ..met }));
    assert_eq!(store.turn_key(&foreign_scope(), KeyOwner::Task(no), name).await.unwrap(), None);
    assert_eq!(log_texts(&*store, no).await, ["first", "second", "more", "fourth"]);
    assert_eq!(found(&*store, no).await.row.unanswered, 1);
    // The key is unique per task: another task may use it too, also for its first message.
    let other = accepted(&*store, |task| task.key = Some(name)).await;
    advance(&*store, follow_up(other, Some(name))).await.unwrap();
    // Sent again to a finished task, it is still a repetition.
    advance(&*store, with_status(no, Step::Cancel, TaskState::Canceled, "over")).await.unwrap();
    assert_eq!(advance(&*store, follow_up(no, Some(name))).await, Err(used(no, 3, true)));
}

async fn rejected_message_does_not_use_its_key(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let taken = Accept { key: key(1, 1), ..task(no) };
    assert!(matches!(accept(&*store, taken).await, Err(NotCommitted::Conflict(_))));
    let fresh = keyed(&*store, key(1, 1)).await;
    accept(&*store, fresh).await.unwrap();

    let answer = Advance { step: Step::Resume(interrupted(1)), ..follow_up(no, key(2, 2)) };
    let met = Conflict { state: Some(TaskState::Working), fence: 1, unanswered: 0 };
    assert_eq!(advance(&*store, answer).await, Err(NotCommitted::Conflict(met)));
    assert_eq!(store.turn_key(&scope(), KeyOwner::Task(no), key(2, 2).unwrap()).await.unwrap(), None);
    advance(&*store, follow_up(no, key(2, 2))).await.unwrap();
}

async fn first_message_of_a_client_named_task_counts_as_its_follow_up(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| (task.client_id, task.key) = (Some("t-1".into()), key(1, 1))).await;
    assert_eq!(advance(&*store, follow_up(no, key(1, 1))).await, Err(used(no, 1, true)));
    assert_eq!(advance(&*store, follow_up(no, key(1, 2))).await, Err(used(no, 1, false)));
    let known = KeyUsed { task: no, tag: tag(no), seq: 1, same: true };
    assert_eq!(store.turn_key(&scope(), KeyOwner::Task(no), key(1, 1).unwrap()).await.unwrap(), Some(known));
    assert_eq!(store.turn_key(&foreign_scope(), KeyOwner::Task(no), key(1, 1).unwrap()).await.unwrap(), None);
    advance(&*store, follow_up(no, key(2, 2))).await.unwrap();
}

async fn keys_survive_a_restart(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| task.key = key(1, 1)).await;
    advance(&*store, follow_up(no, key(2, 2))).await.unwrap();
    let store = database.reopen(store, &Clock::manual(at(0)));
    let again = keyed(&*store, key(1, 1)).await;
    assert_eq!(accept(&*store, again).await, Err(used(no, 1, true)));
    assert_eq!(advance(&*store, follow_up(no, key(2, 2))).await, Err(used(no, 3, true)));
}
