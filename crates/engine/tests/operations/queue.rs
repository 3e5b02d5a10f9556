//! More work than may run at a time waits its turn.

use std::time::Duration;

use protocol::{Role, TaskState};

use crate::common::{Setup, Spoiled, done, history, joined, say, status_text, task};

#[tokio::test]
async fn what_has_no_slot_is_submitted_and_runs_later() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.slots(1).open();
        let (_, running) = house.begin("one").await;
        let queued = house.send_for_task(say("two").at_once()).await;
        assert_eq!(queued.status.state, TaskState::Submitted);
        assert_eq!(house.get(&queued.id).await.unwrap(), queued);
        assert!(house.stage.is_quiet());

        let mut frames = house.subscribe(&queued.id).await.unwrap();
        assert_eq!(frames.next().await, "1 task submitted");
        running.end(done());
        let turn = house.stage.turn().await;
        assert_eq!((&turn.task_id, turn.attempt), (&queued.id, 1));
        assert_eq!((turn.message.text().as_str(), turn.history.len()), ("two", 0));
        turn.end(done());
        assert_eq!(frames.lines().await, ["2 completed"]);
    }
}

#[tokio::test]
async fn who_waits_in_the_queue_gets_the_outcome() {
    let mut house = Setup::plain().slots(1).open();
    let (_, running) = house.begin("one").await;
    let blocking = house.send_aside(say("two"));
    house.store.until("accept", 2).await;
    let mut frames = house.stream(say("three")).await.unwrap();
    assert_eq!(frames.next().await, "1 task submitted");
    running.end(done());
    // Longest due first.
    for text in ["two", "three"] {
        let turn = house.stage.turn().await;
        assert_eq!(turn.message.text(), text);
        turn.end(done());
    }
    let answered = task(joined(blocking).await.unwrap());
    assert_eq!((answered.status.state, history(&answered)), (TaskState::Completed, vec!["two".to_owned()]));
    assert_eq!(frames.lines().await, ["2 completed"]);
}

#[tokio::test]
async fn a_message_in_the_agents_name_waits_and_runs_like_any_other() {
    let mut house = Setup::plain().slots(1).open();
    let (_, running) = house.begin("one").await;
    let call = house.send_aside(say("two").by(Role::Agent));
    house.store.until("accept", 2).await;
    running.end(done());
    let turn = house.stage.turn().await;
    assert_eq!((turn.message.text().as_str(), turn.message.role), ("two", Role::Agent));
    turn.end(done());
    assert_eq!(task(joined(call).await.unwrap()).status.state, TaskState::Completed);
}

#[tokio::test]
async fn work_that_cannot_be_looked_at_is_tried_again() {
    let mut house = Setup::plain().slots(1).open();
    let (_, running) = house.begin("one").await;
    let call = house.send_aside(say("two"));
    house.store.until("accept", 2).await;
    house.store.spoil([Spoiled::NoAnswer, Spoiled::NoAnswer]);
    running.end(done());
    let turn = house.stage.turn().await;
    assert_eq!((turn.message.text().as_str(), turn.attempt), ("two", 3));
    turn.end(done());
    assert_eq!(task(joined(call).await.unwrap()).status.state, TaskState::Completed);
}

#[tokio::test]
async fn work_that_cannot_be_read_fails_and_its_caller_is_told() {
    let mut house = Setup::plain().slots(1).open();
    let (_, running) = house.begin("one").await;
    let call = house.send_aside(say("two"));
    house.store.until("accept", 2).await;
    house.store.spoil([Spoiled::NoLog]);
    running.end(done());
    let failed = task(joined(call).await.unwrap());
    assert_eq!(failed.status.state, TaskState::Failed);
    assert!(status_text(&failed).unwrap().contains("could not take this up"), "{:?}", failed.status);
    // The slot is free again.
    house.stage.prepare_turn([], done());
    assert_eq!(house.send_for_task(say("three")).await.status.state, TaskState::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_goes_through_one_slot_without_a_pause() {
    const CROWD: usize = 200;
    let house = Setup::plain().slots(1).open();
    let calls: Vec<_> = (0..CROWD)
        .map(|_| {
            house.stage.prepare_turn([], done());
            house.send_aside(say("hello"))
        })
        .collect();
    // A slot that is freed and not noticed would cost seconds each time.
    let all = async {
        for call in calls {
            assert_eq!(task(joined(call).await.unwrap()).status.state, TaskState::Completed);
        }
    };
    tokio::time::timeout(Duration::from_secs(4), all).await.expect("a free slot went unnoticed");
}
