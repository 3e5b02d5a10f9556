//! Stopping in good order loses nothing and spends nothing.

use std::time::Duration;

use a2ad_engine::{Error, OnCrash};
use protocol::{ErrorKind, TaskState};

use crate::common::{Ending, Setup, artifact, artifacts, ask, chunk, done, joined, save, say, task, within};

const LONG: Duration = Duration::from_secs(15);

#[tokio::test]
async fn runs_finish_within_the_grace_and_their_callers_get_the_outcome() {
    let mut house = Setup::plain().open();
    let call = house.send_aside(say("hello"));
    let turn = house.stage.turn().await;
    let mut frames = {
        turn.say([artifact("a", "b")]);
        house.store.until("report", 1).await;
        house.subscribe(&turn.task_id).await.unwrap()
    };
    assert_eq!(frames.next().await, "3 task working");
    // Somebody else's stream, of a task at which nobody works.
    house.stage.prepare_turn([], ask("which?"));
    let asked = house.send_for_task(say("something else")).await;
    let mut idle = house.subscribe(&asked.id).await.unwrap();
    assert_eq!(idle.next().await, "2 task input_required");
    let drain = house.drain_aside(LONG);
    turn.say([artifact("c", "d")]);
    assert_eq!(frames.next().await, "4 artifact c: d");
    assert!(!drain.is_finished());
    turn.end(done());
    // Streams see what ends meanwhile, and leave last.
    assert_eq!(frames.rest().await, (vec!["5 completed".to_owned()], Ending::End));
    assert_eq!(idle.rest().await, (Vec::new(), Ending::Cut));
    joined(drain).await;
    assert_eq!(task(joined(call).await.unwrap()).status.state, TaskState::Completed);
}

#[tokio::test]
async fn what_does_not_finish_is_let_go_without_spending_the_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let (id, key) = {
        let mut house = Setup::plain().open_at(folder.path());
        let call = house.send_aside(say("hello"));
        let turn = house.stage.turn().await;
        turn.say([artifact("a", "b"), save("place")]);
        house.store.until("report", 1).await;
        within(house.engine.drain(Duration::ZERO)).await;
        let Err(Error::Later(later)) = joined(call).await else { panic!("there was an outcome") };
        assert_eq!(later.kind, ErrorKind::Unavailable);
        assert!(later.message.contains(turn.task_id.as_str()), "{later:?}");
        assert_eq!(later.facts, [("taskId", turn.task_id.to_string())]);
        turn.gone().await;
        assert_eq!(house.get(&turn.task_id).await.unwrap().status.state, TaskState::Working);
        assert_eq!(house.store.steps().last().unwrap(), "release");
        (turn.task_id.clone(), turn.idempotency_key.clone())
    };
    let mut house = Setup::plain().open_at(folder.path());
    let turn = house.stage.turn().await;
    assert_eq!((&turn.task_id, turn.attempt, &turn.idempotency_key), (&id, 1, &key));
    assert_eq!(turn.saved.as_deref(), Some(b"place".as_slice()));
    turn.end(done());
    house.store.until("finish", 1).await;
    assert_eq!(house.get(&id).await.unwrap().status.state, TaskState::Completed);
}

#[tokio::test]
async fn new_messages_are_refused_while_it_drains() {
    let mut house = Setup::overlapping().open();
    let (id, running) = house.begin("one").await;
    let drain = house.drain_aside(LONG);
    // Until the drain has begun, messages are accepted.
    while house.send(say("two").at_once()).await.is_ok() {
        house.stage.turn().await.end(done());
    }
    for refused in [house.send(say("three")).await.err(), house.stream(say("four")).await.err()] {
        assert!(matches!(refused, Some(Error::Later(_))), "{refused:?}");
    }
    assert_eq!(house.get(&id).await.unwrap().status.state, TaskState::Working);
    running.end(done());
    joined(drain).await;
}

#[tokio::test]
async fn a_released_turn_begins_its_artifacts_anew() {
    let folder = tempfile::tempdir().unwrap();
    let id = {
        let mut house = Setup::plain().open_at(folder.path());
        let (id, turn) = house.begin("hello").await;
        turn.say([chunk("text", "one ")]);
        house.store.until("report", 1).await;
        within(house.engine.drain(Duration::ZERO)).await;
        id
    };
    let mut house = Setup::plain().open_at(folder.path());
    let turn = house.stage.turn().await;
    turn.say([chunk("text", "one ")]);
    turn.say([chunk("text", "two")]);
    turn.end(done());
    house.store.until("finish", 1).await;
    assert_eq!(artifacts(&house.get(&id).await.unwrap()), [("text".into(), "one two".into())]);
}

#[tokio::test]
async fn what_must_not_run_twice_fails_instead_of_being_released() {
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup::plain().on_crash(OnCrash::Fail);
    let id = {
        let mut house = setup().open_at(folder.path());
        let call = house.send_aside(say("pay the bill"));
        let turn = house.stage.turn().await;
        within(house.engine.drain(Duration::ZERO)).await;
        assert_eq!(task(joined(call).await.unwrap()).status.state, TaskState::Failed);
        turn.task_id.clone()
    };
    let mut house = setup().open_at(folder.path());
    assert_eq!(house.get(&id).await.unwrap().status.state, TaskState::Failed);
    house.stage.prepare_turn([], done());
    house.send(say("hello")).await.unwrap();
    assert_eq!(house.stage.turn().await.message.text(), "hello");
}

#[tokio::test]
async fn a_drain_ends_even_while_work_is_being_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    {
        let mut house = Setup::plain().open_at(folder.path());
        house.begin("hello").await;
        within(house.engine.drain(Duration::ZERO)).await;
    }
    let house = Setup::plain().open_at(folder.path());
    let drained = tokio::time::timeout(Duration::from_secs(5), house.engine.drain(Duration::ZERO)).await;
    assert!(drained.is_ok(), "the server cannot be stopped while there is a backlog");
}
