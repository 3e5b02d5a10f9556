//! Graceful shutdown loses no work and spends no attempts.

use std::time::Duration;

use a2ad_engine::{Error, OnCrash, STOP_GRACE};
use futures_util::FutureExt as _;
use protocol::{ErrorKind, TaskState};

use crate::common::{
    Ending, Setup, artifact, artifacts, chunk, done, done_with, join, msg, need_input, prevent_auto_advance,
    progress, save, task, with_timeout,
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

#[tokio::test(start_paused = true)]
async fn agent_may_record_in_the_last_seconds_of_a_shutdown_and_its_outcome_is_ignored() {
    let _time = prevent_auto_advance();
    let folder = tempfile::tempdir().unwrap();
    let id = {
        let mut server = Setup::plain().on_crash(OnCrash::Resume).open_at(folder.path());
        let (id, turn) = server.start_task("hello").await;
        let mut frames = server.subscribe(&id).await.unwrap();
        assert_eq!(frames.next().await, "2 task working");
        let drain = server.spawn_drain(LONG);
        while server.send(msg("hello").to(&id).return_immediately()).await.is_ok() {}
        tokio::time::advance(LONG - STOP_GRACE - Duration::from_secs(1)).await;
        turn.send([progress("still working")]);
        server.store.until("report", 1).await;
        assert!(!turn.cancel.is_cancelled());
        tokio::time::advance(Duration::from_secs(1)).await;
        with_timeout(turn.cancel.cancelled()).await;
        turn.send([save("place"), artifact("a", "kept")]);
        server.store.until("report", 2).await;
        tokio::time::advance(STOP_GRACE - Duration::from_secs(1)).await;
        assert!(!drain.is_finished());
        // The last updates join the outcome, which does not count.
        turn.send([artifact("b", "kept too")]);
        turn.end(done_with("not recorded"));
        turn.dropped().await;
        join(drain).await;
        let (lines, ending) = frames.rest().await;
        let last = lines.last().map(String::as_str);
        assert_eq!((last, ending), (Some("6 artifact b: kept too"), Ending::Draining), "{lines:?}");
        assert_eq!(server.store.steps().last().unwrap(), "release");
        id
    };
    let mut server = Setup::plain().on_crash(OnCrash::Resume).open_at(folder.path());
    let turn = server.agent.turn().await;
    assert_eq!((&turn.task_id, turn.attempt, turn.saved_text()), (&id, 1, Some("place")));
    let kept = artifacts(&server.get(&id).await.unwrap());
    assert_eq!(kept, [("a".into(), "kept".into()), ("b".into(), "kept too".into())]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_with_its_grace_period_when_an_agent_goes_on() {
    let _time = prevent_auto_advance();
    // A grace period that is shorter than the agents' own starts with it.
    for grace in [LONG, Duration::from_secs(2)] {
        let mut server = Setup::plain().open();
        let (id, turn) = server.start_task("hello").await;
        let drain = server.spawn_drain(grace);
        while server.send(msg("hello").to(&id).return_immediately()).await.is_ok() {}
        tokio::time::advance(grace.saturating_sub(STOP_GRACE)).await;
        with_timeout(turn.cancel.cancelled()).await;
        tokio::time::advance(grace.min(STOP_GRACE) - Duration::from_millis(500)).await;
        turn.send([save("last")]);
        server.store.until("report", 1).await;
        assert!(turn.dropped().now_or_never().is_none() && !drain.is_finished(), "{grace:?}");
        tokio::time::advance(Duration::from_millis(500)).await;
        turn.dropped().await;
        join(drain).await;
        assert_eq!(server.store.steps().last().unwrap(), "release", "{grace:?}");
        assert_eq!(server.get(&id).await.unwrap().status.state, TaskState::Working);
    }
}

#[tokio::test(start_paused = true)]
async fn second_shutdown_without_grace_ends_at_once() {
    let _time = prevent_auto_advance();
    for asked_to_stop in [false, true] {
        let mut server = Setup::plain().open();
        let (_, turn) = server.start_task("hello").await;
        let drain = server.spawn_drain(LONG);
        if asked_to_stop {
            while server.send(msg("hello").return_immediately()).await.is_ok() {}
            tokio::time::advance(LONG - STOP_GRACE).await;
            with_timeout(turn.cancel.cancelled()).await;
        }
        let before = tokio::time::Instant::now();
        with_timeout(server.engine.drain(Duration::ZERO)).await;
        join(drain).await;
        assert_eq!(before.elapsed(), Duration::ZERO);
        assert!(turn.cancel.is_cancelled());
        turn.dropped().await;
        assert_eq!(server.store.steps().last().unwrap(), "release");
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_while_agents_are_asked_to_stop_is_final() {
    let _time = prevent_auto_advance();
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    let drain = server.spawn_drain(STOP_GRACE);
    with_timeout(turn.cancel.cancelled()).await;
    let canceled = server.cancel(&id).await.unwrap();
    turn.send([artifact("a", "too late")]);
    turn.end(done());
    turn.dropped().await;
    join(drain).await;
    assert_eq!(server.get(&id).await.unwrap(), canceled);
    let states = server.store.log(&server.row(&id).await).await;
    assert_eq!(states.iter().flatten().filter(|state| state.is_terminal()).count(), 1, "{states:?}");
}
