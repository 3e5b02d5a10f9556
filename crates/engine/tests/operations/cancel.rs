//! A client can cancel an open task once, and the cancel is final.

use std::time::Duration;

use futures_util::FutureExt as _;
use protocol::{ErrorKind, TaskState};

use crate::common::{
    Setup, artifact, artifacts, done, done_with, join, msg, need_input, prevent_auto_advance, progress,
    refused, with_timeout,
};

#[tokio::test]
async fn cancel_ends_a_working_task_and_cancels_its_agent() {
    let mut server = Setup::plain().open();
    let waiting = server.spawn_send(msg("hello"));
    let turn = server.agent.turn().await;
    turn.send([artifact("a", "kept")]);
    server.store.until("report", 1).await;
    let mut frames = server.subscribe(&turn.task_id).await.unwrap();
    assert_eq!(frames.next().await, "3 task working");

    let canceled = server.cancel(&turn.task_id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(artifacts(&canceled), [("a".into(), "kept".into())]);
    with_timeout(turn.cancel.cancelled()).await;
    // Later updates of the agent are dropped.
    turn.send([progress("too late"), artifact("b", "too late")]);
    turn.end(done_with("too late"));
    turn.dropped().await;
    assert_eq!(frames.lines().await, ["4 canceled"]);
    assert_eq!(server.get(&turn.task_id).await.unwrap(), canceled);
    // The blocking caller gets the canceled task.
    let answered = crate::common::task(join(waiting).await.unwrap());
    assert_eq!(answered.status.state, TaskState::Canceled);
}

#[tokio::test(start_paused = true)]
async fn agent_that_ignores_cancellation_is_dropped_after_the_grace_period() {
    let _time = prevent_auto_advance();
    let mut server = Setup::plain().slots(1).open();
    let (id, turn) = server.start_task("hello").await;
    let next = server.spawn_send(msg("next"));
    server.store.until("accept", 2).await;
    server.cancel(&id).await.unwrap();
    with_timeout(turn.cancel.cancelled()).await;
    let mut seconds = 0;
    while turn.dropped().now_or_never().is_none() {
        tokio::time::advance(Duration::from_secs(1)).await;
        seconds += 1;
    }
    assert!((5..=10).contains(&seconds), "{seconds}");
    // Its slot has been released.
    server.agent.turn().await.end(done());
    join(next).await.unwrap();
}

#[tokio::test]
async fn queued_task_is_canceled_before_it_runs() {
    let mut server = Setup::plain().slots(1).open();
    let (_, running) = server.start_task("one").await;
    let queued = server.send_for_task(msg("two").return_immediately()).await;
    let behind = server.send_for_task(msg("three").return_immediately()).await;
    assert_eq!(server.cancel(&queued.id).await.unwrap().status.state, TaskState::Canceled);
    running.end(done());
    let next = server.agent.turn().await;
    assert_eq!(next.task_id, behind.id);
    next.end(done());
    server.store.until("finish", 2).await;
    assert!(server.agent.is_idle());
    assert_eq!(server.get(&queued.id).await.unwrap().status.state, TaskState::Canceled);
}

#[tokio::test]
async fn task_waiting_for_input_is_canceled() {
    let server = Setup::overlapping().open();
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("one of them")).await;
    let mut frames = server.subscribe(&asked.id).await.unwrap();
    assert_eq!(server.cancel(&asked.id).await.unwrap().status.state, TaskState::Canceled);
    assert_eq!(frames.lines().await, ["2 task input_required", "3 canceled"]);
    assert_eq!(refused(server.send(msg("blue").to(&asked.id)).await), ErrorKind::UnsupportedOperation);
}

#[tokio::test]
async fn second_cancel_is_rejected() {
    let mut server = Setup::overlapping().open();
    let (id, _turn) = server.start_task("hold").await;
    let canceled = server.cancel(&id).await.unwrap();
    assert_eq!(refused(server.cancel(&id).await), ErrorKind::TaskNotCancelable);
    assert_eq!(server.get(&id).await.unwrap(), canceled);

    server.agent.prepare_turn([], done());
    let completed = server.send_for_task(msg("hello")).await;
    assert_eq!(refused(server.cancel(&completed.id).await), ErrorKind::TaskNotCancelable);
    assert_eq!(server.get(&completed.id).await.unwrap(), completed);
    assert_eq!(refused(server.cancel(&"unknown".into()).await), ErrorKind::TaskNotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn race_of_cancel_and_completion_records_one_terminal_event() {
    let mut server = Setup::plain().open();
    let mut won = [0, 0];
    for round in 0..60 {
        let (id, turn) = server.start_task("hello").await;
        let mut frames = server.subscribe(&id).await.unwrap();
        let cancels = if round % 2 == 0 {
            turn.end(done());
            [server.spawn_cancel(&id), server.spawn_cancel(&id)]
        } else {
            let cancels = [server.spawn_cancel(&id), server.spawn_cancel(&id)];
            turn.end(done());
            cancels
        };
        let mut successes = 0;
        for cancel in cancels {
            match join(cancel).await {
                Ok(()) => successes += 1,
                refusal => assert_eq!(refused(refusal), ErrorKind::TaskNotCancelable),
            }
        }
        let lines = frames.lines().await;
        let state = server.get(&id).await.unwrap().status.state;
        assert!(successes <= 1);
        let last = if successes == 1 {
            (TaskState::Canceled, "3 canceled")
        } else {
            (TaskState::Completed, "3 completed")
        };
        assert_eq!((state, lines), (last.0, vec!["2 task working".to_owned(), last.1.to_owned()]));
        won[successes] += 1;
    }
    assert_eq!(won.iter().sum::<i32>(), 60);
}
