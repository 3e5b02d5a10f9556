//! A message to a working task is queued until the run ends.

use protocol::{ErrorKind, TaskState};

use crate::common::{
    Setup, artifact, artifacts, done, history, join, msg, need_input, refusal, retryable_failure, save, task,
    working,
};

#[tokio::test]
async fn message_is_recorded_immediately_and_used_when_the_run_pauses() {
    let mut server = Setup::plain().open();
    let (id, first) = server.start_task("one").await;
    let more = server.send_for_task(msg("two").to(&id).return_immediately()).await;
    assert_eq!(
        (more.status.state, history(&more)),
        (TaskState::Working, vec!["one".to_owned(), "two".to_owned()])
    );
    let waiting = server.spawn_send(msg("three").to(&id));
    server.store.until("queuemessage", 2).await;
    assert!(server.agent.is_idle());

    first.end(need_input("which?"));
    let second = server.agent.turn().await;
    assert_eq!((second.message.text().as_str(), second.attempt), ("three", 1));
    assert_ne!(first.idempotency_key, second.idempotency_key);
    second.end(done());
    let over = task(join(waiting).await.unwrap());
    assert_eq!(over.status.state, TaskState::Completed);
    assert!(server.agent.is_idle());
}

#[tokio::test]
async fn message_stays_in_history_when_the_run_ends() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("one").await;
    let mut frames = server.subscribe(&id).await.unwrap();
    assert_eq!(frames.next().await, "2 task working");
    let mut own = server.stream(msg("two").to(&id)).await.unwrap();
    assert_eq!(own.next().await, "3 task working");
    turn.end(done());
    assert_eq!(frames.lines().await, ["3 working", "4 completed"]);
    assert_eq!(own.lines().await, ["4 completed"]);
    let over = server.get(&id).await.unwrap();
    assert_eq!(
        (over.status.state, history(&over)),
        (TaskState::Completed, vec!["one".to_owned(), "two".to_owned()])
    );
    assert!(server.agent.is_idle());
}

#[tokio::test]
async fn updates_of_a_skipped_pause_are_kept() {
    let mut server = Setup::plain().open();
    let (id, first) = server.start_task("one").await;
    server.send(msg("two").to(&id).return_immediately()).await.unwrap();
    // All of it is in the change that would have paused the task.
    server.store.block_commits();
    first.send([working()]);
    first.send([artifact("a", "kept"), save("place")]);
    first.end(need_input("which?"));
    server.store.until_blocked(1).await;
    server.store.unblock_commits();
    let second = server.agent.turn().await;
    assert_eq!(second.message.text(), "two");
    assert_eq!(second.saved_text(), Some("place"), "the checkpoint is lost");
    assert_eq!(artifacts(&server.get(&id).await.unwrap()), [("a".into(), "kept".into())]);
    second.end(done());
}

#[tokio::test]
async fn queued_message_does_not_change_the_input_of_a_retry() {
    let mut server = Setup::plain().open();
    let (id, first) = server.start_task("one").await;
    server.send(msg("two").to(&id).return_immediately()).await.unwrap();
    first.end(retryable_failure("busy"));
    let second = server.agent.turn().await;
    assert_eq!(second.attempt, 2);
    assert_eq!(second.message.text(), "one");
    assert_eq!(second.idempotency_key, first.idempotency_key);
    second.end(need_input("which?"));
    let third = server.agent.turn().await;
    assert_eq!((third.message.text().as_str(), third.attempt), ("two", 1));
    third.end(done());
}

#[tokio::test]
async fn at_most_sixteen_messages_are_queued() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("one").await;
    for number in 0..16 {
        server.send(msg(&format!("more {number}")).to(&id).return_immediately()).await.unwrap();
    }
    let refusal = refusal(server.send(msg("too much").to(&id).return_immediately()).await);
    assert_eq!(refusal.kind, ErrorKind::UnsupportedOperation);
    assert!(refusal.message.contains("16"), "{}", refusal.message);
    turn.end(need_input("which?"));
    // The next run gets them all, and the client can send more.
    let second = server.agent.turn().await;
    assert_eq!((second.message.text().as_str(), second.history.len()), ("more 15", 16));
    server.send(msg("and more").to(&id).return_immediately()).await.unwrap();
    second.end(done());
    server.store.until("finish", 1).await;
    assert_eq!(server.get(&id).await.unwrap().history.len(), 18);
}
