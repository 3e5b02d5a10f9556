//! A message under a key is recorded once; its repetition is told where.

use engine::{
    Clock, Store,
    ids::TaskNo,
    log::Log,
    store::{Accept, Advance, Among, Conflict, KeyUsed, MessageKey, NotCommitted, Step},
};
use protocol::TaskState;

use super::{
    bench::Bench,
    samples::{
        accept, accepted, advance, asked, asks, at, foreign_scope, found, hand_over, lookup, number, report,
        says, scope, step, tag, task, told,
    },
};

on_every_database![
    a_repeated_first_message_makes_no_second_task,
    repetitions_within_one_commit_are_known,
    a_repeated_follow_up_is_recorded_once,
    a_refused_message_does_not_use_its_key,
    the_first_message_to_a_named_task_is_said_to_that_task,
    keys_are_known_in_the_next_process,
];

fn key(name: u8, said: u8) -> Option<MessageKey> {
    Some(MessageKey { key: [name; 16], hash: [said; 16] })
}

fn used(task: TaskNo, seq: u64, same: bool) -> NotCommitted {
    NotCommitted::KeyUsed(KeyUsed { task, tag: tag(task), seq, same })
}

async fn keyed(store: &dyn Store, key: Option<MessageKey>) -> Accept {
    Accept { key, ..task(number(store).await) }
}

fn more(no: TaskNo, key: Option<MessageKey>) -> Advance {
    Advance { log: Log::pack([asked(TaskState::Working, "more")]), key, ..step(no, Step::Listen) }
}

async fn a_repeated_first_message_makes_no_second_task(bench: &dyn Bench) {
    let store = bench.open();
    let first = keyed(&*store, key(1, 1)).await;
    let no = first.no;
    accept(&*store, first).await.unwrap();
    let again = keyed(&*store, key(1, 1)).await;
    let second = again.no;
    assert_eq!(accept(&*store, again).await, Err(used(no, 1, true)));
    let other = keyed(&*store, key(1, 2)).await;
    assert_eq!(accept(&*store, other).await, Err(used(no, 1, false)), "the same key for something else");
    assert!(store.find(&scope(), lookup(&*store, second, tag(second))).await.unwrap().is_none());
    let another = keyed(&*store, key(2, 1)).await;
    accept(&*store, another).await.unwrap();
    // A key is gone with nothing but its task: also when that is over.
    advance(&*store, says(no, Step::Finish { fence: 1 }, TaskState::Completed, "done")).await.unwrap();
    let late = keyed(&*store, key(1, 1)).await;
    assert_eq!(accept(&*store, late).await, Err(used(no, 1, true)));
}

async fn repetitions_within_one_commit_are_known(bench: &dyn Bench) {
    let store = bench.open();
    let tasks = [number(&*store).await, number(&*store).await, number(&*store).await];
    let stalled = bench.stall();
    let receipts = tasks.map(|no| {
        let new = Accept { key: key(1, 1), ..task(no) };
        store.commit(engine::store::Change::Accept(Box::new(new)))
    });
    let follow_ups = [(); 2].map(|()| hand_over(&*store, more(tasks[0], key(2, 2))));
    drop(stalled);
    let [first, second, third] = receipts;
    first.await.unwrap();
    for repeated in [second, third] {
        assert_eq!(repeated.await, Err(used(tasks[0], 1, true)));
    }
    let [one, other] = follow_ups;
    assert_eq!(one.await.unwrap().last_seq, 3);
    assert_eq!(other.await, Err(used(tasks[0], 3, true)));
}

async fn a_repeated_follow_up_is_recorded_once(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    let known = |key: MessageKey| store.turn_key(&scope(), Among::Task(no), key);
    let name = key(1, 1).unwrap();
    assert_eq!(known(name).await.unwrap(), None);
    advance(&*store, more(no, Some(name))).await.unwrap();
    advance(&*store, report(no, &["fourth"])).await.unwrap();
    assert_eq!(advance(&*store, more(no, Some(name))).await, Err(used(no, 3, true)));
    assert_eq!(advance(&*store, more(no, key(1, 9))).await, Err(used(no, 3, false)));
    let met = KeyUsed { task: no, tag: tag(no), seq: 3, same: true };
    assert_eq!(known(name).await.unwrap(), Some(met));
    assert_eq!(known(key(1, 9).unwrap()).await.unwrap(), Some(KeyUsed { same: false, ..met }));
    assert_eq!(store.turn_key(&foreign_scope(), Among::Task(no), name).await.unwrap(), None);
    assert_eq!(told(&*store, no).await, ["first", "second", "more", "fourth"]);
    assert_eq!(found(&*store, no).await.row.unanswered, 1);
    // The key belongs to this task: another may have it too, and so may the first message of one.
    let other = accepted(&*store, |task| task.key = Some(name)).await;
    advance(&*store, more(other, Some(name))).await.unwrap();
    // Repeated to a task that is over, it is still a repetition.
    advance(&*store, says(no, Step::Cancel, TaskState::Canceled, "over")).await.unwrap();
    assert_eq!(advance(&*store, more(no, Some(name))).await, Err(used(no, 3, true)));
}

async fn a_refused_message_does_not_use_its_key(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    let taken = Accept { key: key(1, 1), ..task(no) };
    assert!(matches!(accept(&*store, taken).await, Err(NotCommitted::Conflict(_))));
    let fresh = keyed(&*store, key(1, 1)).await;
    accept(&*store, fresh).await.unwrap();

    let answer = Advance { step: Step::Resume(asks(1)), ..more(no, key(2, 2)) };
    let met = Conflict { state: Some(TaskState::Working), fence: 1, unanswered: 0 };
    assert_eq!(advance(&*store, answer).await, Err(NotCommitted::Conflict(met)));
    assert_eq!(store.turn_key(&scope(), Among::Task(no), key(2, 2).unwrap()).await.unwrap(), None);
    advance(&*store, more(no, key(2, 2))).await.unwrap();
}

async fn the_first_message_to_a_named_task_is_said_to_that_task(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |task| (task.client_id, task.key) = (Some("t-1".into()), key(1, 1))).await;
    assert_eq!(advance(&*store, more(no, key(1, 1))).await, Err(used(no, 1, true)));
    assert_eq!(advance(&*store, more(no, key(1, 2))).await, Err(used(no, 1, false)));
    let known = KeyUsed { task: no, tag: tag(no), seq: 1, same: true };
    assert_eq!(store.turn_key(&scope(), Among::Task(no), key(1, 1).unwrap()).await.unwrap(), Some(known));
    assert_eq!(store.turn_key(&foreign_scope(), Among::Task(no), key(1, 1).unwrap()).await.unwrap(), None);
    advance(&*store, more(no, key(2, 2))).await.unwrap();
}

async fn keys_are_known_in_the_next_process(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |task| task.key = key(1, 1)).await;
    advance(&*store, more(no, key(2, 2))).await.unwrap();
    let store = bench.reopen(store, &Clock::manual(at(0)));
    let again = keyed(&*store, key(1, 1)).await;
    assert_eq!(accept(&*store, again).await, Err(used(no, 1, true)));
    assert_eq!(advance(&*store, more(no, key(2, 2))).await, Err(used(no, 3, true)));
}
