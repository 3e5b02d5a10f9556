//! A turn that takes too long fails.

use std::time::Duration;

use protocol::TaskState;

use crate::common::{
    Setup, answer, artifact, artifacts, ask, done, joined, say, stand_still, status_text, task, working,
};

#[tokio::test(start_paused = true)]
async fn a_turn_that_takes_too_long_fails_and_its_agent_is_dropped() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let _time = stand_still();
        let mut house = setup.slots(1).open();
        let call = house.send_aside(say("hello"));
        let turn = house.stage.turn().await;
        turn.say([artifact("a", "kept")]);
        house.store.until("report", 1).await;
        assert!(turn.time_left() <= Duration::from_secs(600) && turn.time_left() > Duration::from_secs(590));
        tokio::time::advance(Duration::from_secs(590)).await;
        assert_eq!(house.get(&turn.task_id).await.unwrap().status.state, TaskState::Working);
        tokio::time::advance(Duration::from_secs(11)).await;
        let failed = task(joined(call).await.unwrap());
        assert_eq!(failed.status.state, TaskState::Failed);
        assert_eq!(status_text(&failed).as_deref(), Some("the turn took longer than 600s"));
        assert_eq!(artifacts(&failed), [("a".into(), "kept".into())]);
        turn.gone().await;
        // The slot is free and the next turn has its own time.
        house.stage.prepare_turn([], done());
        assert_eq!(house.send_for_task(say("hello")).await.status.state, TaskState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn each_turn_has_its_own_time_and_waiting_for_the_client_takes_none() {
    let _time = stand_still();
    let mut house = Setup::plain().open();
    house.stage.prepare_turn([], ask("which?"));
    let asked = house.send_for_task(say("one of them")).await;
    house.stage.turn().await;
    tokio::time::advance(Duration::from_secs(3_600)).await;
    let call = house.send_aside(say("blue").to(&asked.id));
    let turn = house.stage.turn().await;
    assert!(turn.time_left() > Duration::from_secs(590));
    turn.end(done());
    assert_eq!(task(joined(call).await.unwrap()).status.state, TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_send_that_has_waited_long_enough_is_answered_by_the_task_as_it_stands() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let _time = stand_still();
        let mut house = setup.wait(Duration::from_secs(30)).open();
        let call = house.send_aside(say("hello"));
        let turn = house.stage.turn().await;
        turn.say([working(), artifact("a", "kept")]);
        house.store.until("report", 1).await;
        tokio::time::advance(Duration::from_secs(31)).await;
        let waited = task(joined(call).await.unwrap());
        assert_eq!(waited.status.state, TaskState::Working);
        assert_eq!(artifacts(&waited), [("a".into(), "kept".into())]);
        // The work goes on.
        turn.end(done());
        house.store.until("finish", 1).await;
        assert_eq!(house.get(&waited.id).await.unwrap().status.state, TaskState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_says_nothing_is_not_waited_for_any_longer() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let _time = stand_still();
        let mut house = setup.wait(Duration::from_secs(30)).open();
        let call = house.send_aside(say("hello"));
        let turn = house.stage.turn().await;
        house.store.until("accept", 1).await;
        tokio::time::advance(Duration::from_secs(31)).await;
        house.store.until("report", 1).await;
        tokio::time::advance(Duration::from_secs(31)).await;
        let waited = task(joined(call).await.unwrap());
        assert_eq!(waited.status.state, TaskState::Working);
        // It is a task by now, whatever its agent says.
        turn.say([answer("hi")]);
        turn.end(done());
        house.store.until("finish", 1).await;
        assert_eq!(house.get(&waited.id).await.unwrap().status.state, TaskState::Completed);
    }
}
