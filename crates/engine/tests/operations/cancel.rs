//! A client may end a task that is open, once, and that is the last word.

use std::time::Duration;

use futures_util::FutureExt as _;
use protocol::{ErrorKind, TaskState};

use crate::common::{
    Setup, artifact, artifacts, ask, done, done_saying, joined, progress, refused, say, stand_still, within,
};

#[tokio::test]
async fn a_task_at_work_is_ended_and_its_agent_is_told() {
    let mut house = Setup::plain().open();
    let waiting = house.send_aside(say("hello"));
    let turn = house.stage.turn().await;
    turn.say([artifact("a", "kept")]);
    house.store.until("report", 1).await;
    let mut frames = house.subscribe(&turn.task_id).await.unwrap();
    assert_eq!(frames.next().await, "3 task working");

    let canceled = house.cancel(&turn.task_id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(artifacts(&canceled), [("a".into(), "kept".into())]);
    within(turn.cancel.cancelled()).await;
    // Whatever the agent still says is dropped.
    turn.say([progress("too late"), artifact("b", "too late")]);
    turn.end(done_saying("too late"));
    turn.gone().await;
    assert_eq!(frames.lines().await, ["4 canceled"]);
    assert_eq!(house.get(&turn.task_id).await.unwrap(), canceled);
    // The caller that waits for the outcome gets this one.
    let answered = crate::common::task(joined(waiting).await.unwrap());
    assert_eq!(answered.status.state, TaskState::Canceled);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_listen_is_dropped_after_a_moment() {
    let _time = stand_still();
    let mut house = Setup::plain().slots(1).open();
    let (id, turn) = house.begin("hello").await;
    let next = house.send_aside(say("next"));
    house.store.until("accept", 2).await;
    house.cancel(&id).await.unwrap();
    within(turn.cancel.cancelled()).await;
    let mut seconds = 0;
    while turn.gone().now_or_never().is_none() {
        tokio::time::advance(Duration::from_secs(1)).await;
        seconds += 1;
    }
    assert!((5..=10).contains(&seconds), "{seconds}");
    // Its slot is free again.
    house.stage.turn().await.end(done());
    joined(next).await.unwrap();
}

#[tokio::test]
async fn a_queued_task_is_ended_before_it_ever_ran() {
    let mut house = Setup::plain().slots(1).open();
    let (_, running) = house.begin("one").await;
    let queued = house.send_for_task(say("two").at_once()).await;
    let behind = house.send_for_task(say("three").at_once()).await;
    assert_eq!(house.cancel(&queued.id).await.unwrap().status.state, TaskState::Canceled);
    running.end(done());
    let next = house.stage.turn().await;
    assert_eq!(next.task_id, behind.id);
    next.end(done());
    house.store.until("finish", 2).await;
    assert!(house.stage.is_quiet());
    assert_eq!(house.get(&queued.id).await.unwrap().status.state, TaskState::Canceled);
}

#[tokio::test]
async fn a_task_that_asks_is_ended() {
    let house = Setup::overlapping().open();
    house.stage.prepare_turn([], ask("which?"));
    let asked = house.send_for_task(say("one of them")).await;
    let mut frames = house.subscribe(&asked.id).await.unwrap();
    assert_eq!(house.cancel(&asked.id).await.unwrap().status.state, TaskState::Canceled);
    assert_eq!(frames.lines().await, ["2 task input_required", "3 canceled"]);
    assert_eq!(refused(house.send(say("blue").to(&asked.id)).await), ErrorKind::UnsupportedOperation);
}

#[tokio::test]
async fn a_second_cancel_changes_nothing() {
    let mut house = Setup::overlapping().open();
    let (id, _turn) = house.begin("hold").await;
    let canceled = house.cancel(&id).await.unwrap();
    assert_eq!(refused(house.cancel(&id).await), ErrorKind::TaskNotCancelable);
    assert_eq!(house.get(&id).await.unwrap(), canceled);

    house.stage.prepare_turn([], done());
    let completed = house.send_for_task(say("hello")).await;
    assert_eq!(refused(house.cancel(&completed.id).await), ErrorKind::TaskNotCancelable);
    assert_eq!(house.get(&completed.id).await.unwrap(), completed);
    assert_eq!(refused(house.cancel(&"unknown".into()).await), ErrorKind::TaskNotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_a_race_exactly_one_terminal_event_is_recorded() {
    let mut house = Setup::plain().open();
    let mut won = [0, 0];
    for round in 0..60 {
        let (id, turn) = house.begin("hello").await;
        let mut frames = house.subscribe(&id).await.unwrap();
        let cancels = if round % 2 == 0 {
            turn.end(done());
            [house.cancel_aside(&id), house.cancel_aside(&id)]
        } else {
            let cancels = [house.cancel_aside(&id), house.cancel_aside(&id)];
            turn.end(done());
            cancels
        };
        let mut successes = 0;
        for cancel in cancels {
            match joined(cancel).await {
                Ok(()) => successes += 1,
                refusal => assert_eq!(refused(refusal), ErrorKind::TaskNotCancelable),
            }
        }
        let lines = frames.lines().await;
        let state = house.get(&id).await.unwrap().status.state;
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
