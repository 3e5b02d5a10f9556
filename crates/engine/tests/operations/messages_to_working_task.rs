//! What is said to a task at work waits for the run's end.

use protocol::{ErrorKind, TaskState};

use crate::common::{
    Setup, artifact, artifacts, ask, done, history, joined, refusal, save, say, task, try_again, working,
};

#[tokio::test]
async fn it_is_recorded_at_once_and_used_when_the_run_asks() {
    let mut house = Setup::plain().open();
    let (id, first) = house.begin("one").await;
    let more = house.send_for_task(say("two").to(&id).at_once()).await;
    assert_eq!(
        (more.status.state, history(&more)),
        (TaskState::Working, vec!["one".to_owned(), "two".to_owned()])
    );
    let waiting = house.send_aside(say("three").to(&id));
    house.store.until("listen", 2).await;
    assert!(house.stage.is_quiet());

    first.end(ask("which?"));
    let second = house.stage.turn().await;
    assert_eq!((second.message.text().as_str(), second.attempt), ("three", 1));
    assert_ne!(first.idempotency_key, second.idempotency_key);
    second.end(done());
    let over = task(joined(waiting).await.unwrap());
    assert_eq!(over.status.state, TaskState::Completed);
    assert!(house.stage.is_quiet());
}

#[tokio::test]
async fn it_stays_in_history_when_the_run_ends() {
    let mut house = Setup::plain().open();
    let (id, turn) = house.begin("one").await;
    let mut frames = house.subscribe(&id).await.unwrap();
    assert_eq!(frames.next().await, "2 task working");
    let mut own = house.stream(say("two").to(&id)).await.unwrap();
    assert_eq!(own.next().await, "3 task working");
    turn.end(done());
    assert_eq!(frames.lines().await, ["3 working", "4 completed"]);
    assert_eq!(own.lines().await, ["4 completed"]);
    let over = house.get(&id).await.unwrap();
    assert_eq!(
        (over.status.state, history(&over)),
        (TaskState::Completed, vec!["one".to_owned(), "two".to_owned()])
    );
    assert!(house.stage.is_quiet());
}

#[tokio::test]
async fn what_the_run_said_last_is_kept_when_it_is_answered_before_it_asked() {
    let mut house = Setup::plain().open();
    let (id, first) = house.begin("one").await;
    house.send(say("two").to(&id).at_once()).await.unwrap();
    // All of it reaches the writer in the change that would have paused the task.
    house.store.close_gate();
    first.say([working()]);
    first.say([artifact("a", "kept"), save("place")]);
    first.end(ask("which?"));
    house.store.until_waiting(1).await;
    house.store.open_gate();
    let second = house.stage.turn().await;
    assert_eq!(second.message.text(), "two");
    assert_eq!(second.saved.as_deref(), Some(b"place".as_slice()), "what was saved is lost");
    assert_eq!(artifacts(&house.get(&id).await.unwrap()), [("a".into(), "kept".into())]);
    second.end(done());
}

#[tokio::test]
async fn it_does_not_change_what_another_attempt_is_for() {
    let mut house = Setup::plain().open();
    let (id, first) = house.begin("one").await;
    house.send(say("two").to(&id).at_once()).await.unwrap();
    first.end(try_again("busy"));
    let second = house.stage.turn().await;
    assert_eq!(second.attempt, 2);
    assert_eq!(second.message.text(), "one");
    assert_eq!(second.idempotency_key, first.idempotency_key);
    second.end(ask("which?"));
    let third = house.stage.turn().await;
    assert_eq!((third.message.text().as_str(), third.attempt), ("two", 1));
    third.end(done());
}

#[tokio::test]
async fn sixteen_may_wait() {
    let mut house = Setup::plain().open();
    let (id, turn) = house.begin("one").await;
    for number in 0..16 {
        house.send(say(&format!("more {number}")).to(&id).at_once()).await.unwrap();
    }
    let refusal = refusal(house.send(say("too much").to(&id).at_once()).await);
    assert_eq!(refusal.kind, ErrorKind::UnsupportedOperation);
    assert!(refusal.message.contains("16"), "{}", refusal.message);
    turn.end(ask("which?"));
    // The next run has them all, and the client may go on.
    let second = house.stage.turn().await;
    assert_eq!((second.message.text().as_str(), second.history.len()), ("more 15", 16));
    house.send(say("and more").to(&id).at_once()).await.unwrap();
    second.end(done());
    house.store.until("finish", 1).await;
    assert_eq!(house.get(&id).await.unwrap().history.len(), 18);
}
