//! Graceful shutdown loses no work and spends no attempts.

use std::time::Duration;

use a2ad_engine::{Error, OnCrash};
use protocol::{ErrorKind, TaskState};

use crate::common::{
    Ending, Setup, artifact, artifacts, chunk, done, join, msg, need_input, save, task, with_timeout,
};

const LONG: Duration = Duration::from_secs(15);

#[tokio::test]
async fn runs_that_finish_in_the_grace_period_reach_their_callers() {
    let mut server = Setup::plain().open();
    let call = server.spawn_send(msg("hello"));
    let turn = server.agent.turn().await;
    let mut frames = {
        turn.send([artifact("a", "b")]);
        server.store.until("report", 1).await;
        server.subscribe(&turn.task_id).await.unwrap()
    };
    assert_eq!(frames.next().await, "3 task working");
    // A stream of a task that waits for input.
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("something else")).await;
    let mut idle = server.subscribe(&asked.id).await.unwrap();
    assert_eq!(idle.next().await, "2 task input_required");
    let drain = server.spawn_drain(LONG);
    turn.send([artifact("c", "d")]);
    assert_eq!(frames.next().await, "4 artifact c: d");
    assert!(!drain.is_finished());
    turn.end(done());
    // Streams see runs that end meanwhile, and are closed last.
    assert_eq!(frames.rest().await, (vec!["5 completed".to_owned()], Ending::End));
    assert_eq!(idle.rest().await, (Vec::new(), Ending::Draining));
    join(drain).await;
    assert_eq!(task(join(call).await.unwrap()).status.state, TaskState::Completed);
}

#[tokio::test]
async fn unfinished_run_is_released_without_spending_the_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let (id, key) = {
        let mut server = Setup::plain().open_at(folder.path());
        let call = server.spawn_send(msg("hello"));
        let turn = server.agent.turn().await;
        turn.send([artifact("a", "b"), save("place")]);
        server.store.until("report", 1).await;
        with_timeout(server.engine.drain(Duration::ZERO)).await;
        let Err(Error::RetryLater(later)) = join(call).await else { panic!("expected no outcome") };
        assert_eq!(later.kind, ErrorKind::Unavailable);
        assert!(later.message.contains(turn.task_id.as_str()), "{later:?}");
        assert_eq!(later.facts, [("taskId", turn.task_id.to_string())]);
        turn.dropped().await;
        assert_eq!(server.get(&turn.task_id).await.unwrap().status.state, TaskState::Working);
        assert_eq!(server.store.steps().last().unwrap(), "release");
        (turn.task_id.clone(), turn.idempotency_key.clone())
    };
    let mut server = Setup::plain().open_at(folder.path());
    let turn = server.agent.turn().await;
    assert_eq!((&turn.task_id, turn.attempt, &turn.idempotency_key), (&id, 1, &key));
    assert_eq!(turn.saved_text(), Some("place"));
    turn.end(done());
    server.store.until("finish", 1).await;
    assert_eq!(server.get(&id).await.unwrap().status.state, TaskState::Completed);
}

#[tokio::test]
async fn new_messages_are_rejected_during_shutdown() {
    let mut server = Setup::overlapping().open();
    let (id, running) = server.start_task("one").await;
    let drain = server.spawn_drain(LONG);
    // Messages are accepted until the shutdown has started.
    while server.send(msg("two").return_immediately()).await.is_ok() {
        server.agent.turn().await.end(done());
    }
    for refused in [server.send(msg("three")).await.err(), server.stream(msg("four")).await.err()] {
        assert!(matches!(refused, Some(Error::RetryLater(_))), "{refused:?}");
    }
    assert_eq!(server.get(&id).await.unwrap().status.state, TaskState::Working);
    running.end(done());
    join(drain).await;
}

#[tokio::test]
async fn released_turn_replaces_its_artifacts() {
    let folder = tempfile::tempdir().unwrap();
    let id = {
        let mut server = Setup::plain().open_at(folder.path());
        let (id, turn) = server.start_task("hello").await;
        turn.send([chunk("text", "one ")]);
        server.store.until("report", 1).await;
        with_timeout(server.engine.drain(Duration::ZERO)).await;
        id
    };
    let mut server = Setup::plain().open_at(folder.path());
    let turn = server.agent.turn().await;
    turn.send([chunk("text", "one ")]);
    turn.send([chunk("text", "two")]);
    turn.end(done());
    server.store.until("finish", 1).await;
    assert_eq!(artifacts(&server.get(&id).await.unwrap()), [("text".into(), "one two".into())]);
}

#[tokio::test]
async fn turn_with_on_crash_fail_fails_at_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup::plain().on_crash(OnCrash::Fail);
    let id = {
        let mut server = setup().open_at(folder.path());
        let call = server.spawn_send(msg("pay the bill"));
        let turn = server.agent.turn().await;
        with_timeout(server.engine.drain(Duration::ZERO)).await;
        assert_eq!(task(join(call).await.unwrap()).status.state, TaskState::Failed);
        turn.task_id.clone()
    };
    let mut server = setup().open_at(folder.path());
    assert_eq!(server.get(&id).await.unwrap().status.state, TaskState::Failed);
    server.agent.prepare_turn([], done());
    server.send(msg("hello")).await.unwrap();
    assert_eq!(server.agent.turn().await.message.text(), "hello");
}

#[tokio::test]
async fn shutdown_ends_while_work_is_being_claimed() {
    let folder = tempfile::tempdir().unwrap();
    {
        let mut server = Setup::plain().open_at(folder.path());
        server.start_task("hello").await;
        with_timeout(server.engine.drain(Duration::ZERO)).await;
    }
    let server = Setup::plain().open_at(folder.path());
    let drained = tokio::time::timeout(Duration::from_secs(5), server.engine.drain(Duration::ZERO)).await;
    assert!(drained.is_ok(), "shutdown does not end while there is a backlog");
}
