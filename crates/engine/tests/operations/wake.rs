//! The work of one task is started on request.

use std::time::Duration;

use a2ad_engine::{Clock, Error, Store as _};
use protocol::{Dialect, TaskId, TaskState, Timestamp};

use crate::{
    common::{Setup, call_in, done, msg, need_input, process, reply, retryable_failure, task},
    crash::finished,
};

#[test]
fn work_that_the_runner_has_not_found_starts_when_it_is_woken() {
    let folder = tempfile::tempdir().unwrap();
    let queued = process(folder.path(), Setup::plain().slots(1), async |server| {
        let _running = server.start_task("one").await;
        server.send_for_task(msg("two").return_immediately()).await.id
    });
    process(folder.path(), Setup::plain().hide_due(), async |server| {
        server.agent.prepare_turn([], done());
        server.send_for_task(msg("three")).await;
        assert_eq!(server.agent.turn().await.message.text(), "three");
        assert!(server.agent.is_idle(), "nothing else is found");
        assert_eq!(server.engine.wake(&queued).await.unwrap(), Some(TaskState::Submitted));
        let turn = server.agent.turn().await;
        assert_eq!((&turn.task_id, turn.attempt), (&queued, 1));
        // Its run is not started a second time.
        assert_eq!(server.engine.wake(&queued).await.unwrap(), Some(TaskState::Submitted));
        turn.end(done());
        finished(server, &queued).await;
        assert_eq!(server.engine.wake(&queued).await.unwrap(), Some(TaskState::Completed));
        assert!(server.agent.is_idle());
        assert_eq!(server.store.count("claim"), 1);
    });
}

#[tokio::test]
async fn task_that_waits_for_its_client_is_left_alone() {
    let mut server = Setup::plain().open();
    server.agent.prepare_turn([], need_input("which?"));
    let asks = server.send_for_task(msg("hello")).await;
    server.agent.turn().await;
    assert_eq!(server.engine.wake(&asks.id).await.unwrap(), Some(TaskState::InputRequired));
    assert_eq!(server.get(&asks.id).await.unwrap(), asks);
    assert_eq!(server.store.count("claim"), 0);
}

#[tokio::test]
async fn retry_keeps_its_backoff() {
    let clock = Clock::manual(Timestamp::from_millis(1_000_000));
    let mut server = Setup::plain().clock(&clock).open();
    let (id, turn) = server.start_task("hello").await;
    turn.end(retryable_failure("busy"));
    // The second attempt follows at once, the third after a backoff of up to a second.
    let turn = server.agent.turn().await;
    turn.end(retryable_failure("busy"));
    server.store.until("retry", 2).await;
    let row = server.row(&id).await;
    let queued = server.store.task_work(row.no, row.tag).await.unwrap().unwrap().queued.unwrap();
    if queued.at <= clock.now() {
        // The backoff is random, and zero once in a thousand times.
        return;
    }
    let claims = server.store.count("claim");
    assert_eq!(server.engine.wake(&id).await.unwrap(), Some(TaskState::Working));
    // What is granted is claimed before this turn ends.
    server.agent.prepare_turn([], done());
    server.send_for_task(msg("other")).await;
    server.agent.turn().await;
    assert_eq!(server.store.count("claim"), claims);
    clock.advance(Duration::from_secs(2));
    assert_eq!(server.engine.wake(&id).await.unwrap(), Some(TaskState::Working));
    assert_eq!(server.agent.turn().await.attempt, 3);
}

#[tokio::test]
async fn only_ids_that_the_server_made_are_found() {
    let server = Setup::plain().open();
    server.agent.prepare_turn([], done());
    let named = server.send_as(call_in(Dialect::Draft), msg("hello").client_task("chosen")).await.unwrap();
    assert_eq!(task(reply(named)).id.as_str(), "chosen");
    for unknown in ["chosen", "", "task_", "task_00000000000000000000000000000"] {
        assert_eq!(server.engine.wake(&TaskId::from(unknown)).await.unwrap(), None, "{unknown}");
    }
}

#[test]
fn queued_work_is_not_started_during_a_drain() {
    let folder = tempfile::tempdir().unwrap();
    let queued = process(folder.path(), Setup::plain().slots(1), async |server| {
        let _running = server.start_task("one").await;
        server.send_for_task(msg("two").return_immediately()).await.id
    });
    process(folder.path(), Setup::plain().hide_due(), async |server| {
        server.engine.drain(Duration::ZERO).await;
        let refused = server.engine.wake(&queued).await;
        assert!(matches!(refused, Err(Error::RetryLater(_))), "{refused:?}");
    });
}
