//! Deadlines of turns and wait limits of blocking sends.

use std::time::Duration;

use a2ad_engine::STOP_GRACE;
use protocol::TaskState;

use crate::common::{
    Setup, artifact, artifacts, bare_message, done, join, msg, need_input, prevent_auto_advance,
    status_metadata, status_text, task, working,
};

#[tokio::test(start_paused = true)]
async fn turn_past_its_deadline_fails_and_its_agent_is_dropped_after_its_grace() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let _time = prevent_auto_advance();
        let mut server = setup.slots(1).open();
        let call = server.spawn_send(msg("hello"));
        let turn = server.agent.turn().await;
        turn.send([artifact("a", "kept")]);
        server.store.until("report", 1).await;
        assert!(turn.time_left() <= Duration::from_secs(600) && turn.time_left() > Duration::from_secs(590));
        tokio::time::advance(Duration::from_secs(590)).await;
        assert_eq!(server.get(&turn.task_id).await.unwrap().status.state, TaskState::Working);
        tokio::time::advance(Duration::from_secs(11)).await;
        let failed = task(join(call).await.unwrap());
        assert_eq!(failed.status.state, TaskState::Failed);
        assert_eq!(status_text(&failed).as_deref(), Some("the turn took longer than 600s"));
        assert_eq!(status_metadata(&failed), Some(r#"{"a2ad":{"reason":"run_time"}}"#));
        assert_eq!(artifacts(&failed), [("a".into(), "kept".into())]);
        tokio::time::advance(STOP_GRACE).await;
        turn.dropped().await;
        // The slot is free and the next turn has its own deadline.
        server.agent.prepare_turn([], done());
        assert_eq!(server.send_for_task(msg("hello")).await.status.state, TaskState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn each_turn_has_its_own_deadline() {
    let _time = prevent_auto_advance();
    let mut server = Setup::plain().open();
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("one of them")).await;
    server.agent.turn().await;
    tokio::time::advance(Duration::from_secs(3_600)).await;
    let call = server.spawn_send(msg("blue").to(&asked.id));
    let turn = server.agent.turn().await;
    assert!(turn.time_left() > Duration::from_secs(590));
    turn.end(done());
    assert_eq!(task(join(call).await.unwrap()).status.state, TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn blocking_send_past_its_wait_limit_returns_the_current_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let _time = prevent_auto_advance();
        let mut server = setup.wait(Duration::from_secs(30)).open();
        let call = server.spawn_send(msg("hello"));
        let turn = server.agent.turn().await;
        turn.send([working(), artifact("a", "kept")]);
        server.store.until("report", 1).await;
        tokio::time::advance(Duration::from_secs(31)).await;
        let waited = task(join(call).await.unwrap());
        assert_eq!(waited.status.state, TaskState::Working);
        assert_eq!(artifacts(&waited), [("a".into(), "kept".into())]);
        // The run continues.
        turn.end(done());
        server.store.until("finish", 1).await;
        assert_eq!(server.get(&waited.id).await.unwrap().status.state, TaskState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn blocking_send_past_its_wait_limit_makes_an_undecided_task_visible() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let _time = prevent_auto_advance();
        let mut server = setup.wait(Duration::from_secs(30)).open();
        let call = server.spawn_send(msg("hello"));
        let turn = server.agent.turn().await;
        server.store.until("accept", 1).await;
        tokio::time::advance(Duration::from_secs(31)).await;
        server.store.until("report", 1).await;
        tokio::time::advance(Duration::from_secs(31)).await;
        let waited = task(join(call).await.unwrap());
        assert_eq!(waited.status.state, TaskState::Working);
        // The task is visible by now, so a message completes it.
        turn.send([bare_message("hi")]);
        turn.end(done());
        server.store.until("finish", 1).await;
        assert_eq!(server.get(&waited.id).await.unwrap().status.state, TaskState::Completed);
    }
}
