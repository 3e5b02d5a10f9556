//! Work beyond the concurrency limit is queued.

use std::time::Duration;

use protocol::{Role, TaskState};

use crate::common::{Setup, WorkFault, done, history, join, msg, status_text, task};

#[tokio::test]
async fn task_without_a_slot_is_submitted_and_runs_later() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.slots(1).open();
        let (_, running) = server.start_task("one").await;
        let queued = server.send_for_task(msg("two").return_immediately()).await;
        assert_eq!(queued.status.state, TaskState::Submitted);
        assert_eq!(server.get(&queued.id).await.unwrap(), queued);
        assert!(server.agent.is_idle());

        let mut frames = server.subscribe(&queued.id).await.unwrap();
        assert_eq!(frames.next().await, "1 task submitted queued 1");
        running.end(done());
        let turn = server.agent.turn().await;
        assert_eq!((&turn.task_id, turn.attempt), (&queued.id, 1));
        assert_eq!((turn.message.text().as_str(), turn.history.len()), ("two", 0));
        turn.end(done());
        assert_eq!(frames.lines().await, ["2 completed"]);
    }
}

#[tokio::test]
async fn callers_of_queued_tasks_get_the_outcome() {
    let mut server = Setup::plain().slots(1).open();
    let (_, running) = server.start_task("one").await;
    let blocking = server.spawn_send(msg("two"));
    server.store.until("accept", 2).await;
    let mut frames = server.stream(msg("three")).await.unwrap();
    assert_eq!(frames.next().await, "1 task submitted queued 2");
    running.end(done());
    // Longest due first.
    for text in ["two", "three"] {
        let turn = server.agent.turn().await;
        assert_eq!(turn.message.text(), text);
        turn.end(done());
    }
    let answered = task(join(blocking).await.unwrap());
    assert_eq!((answered.status.state, history(&answered)), (TaskState::Completed, vec!["two".to_owned()]));
    assert_eq!(frames.lines().await, ["2 completed"]);
}

#[tokio::test]
async fn message_with_agent_role_is_queued_and_runs() {
    let mut server = Setup::plain().slots(1).open();
    let (_, running) = server.start_task("one").await;
    let call = server.spawn_send(msg("two").role(Role::Agent));
    server.store.until("accept", 2).await;
    running.end(done());
    let turn = server.agent.turn().await;
    assert_eq!((turn.message.text().as_str(), turn.message.role), ("two", Role::Agent));
    turn.end(done());
    assert_eq!(task(join(call).await.unwrap()).status.state, TaskState::Completed);
}

#[tokio::test]
async fn claimed_task_is_retried_when_the_store_is_unavailable() {
    let mut server = Setup::plain().slots(1).open();
    let (_, running) = server.start_task("one").await;
    let call = server.spawn_send(msg("two"));
    server.store.until("accept", 2).await;
    server.store.inject_faults([WorkFault::Unavailable, WorkFault::Unavailable]);
    running.end(done());
    let turn = server.agent.turn().await;
    assert_eq!((turn.message.text().as_str(), turn.attempt), ("two", 3));
    turn.end(done());
    assert_eq!(task(join(call).await.unwrap()).status.state, TaskState::Completed);
}

#[tokio::test]
async fn claimed_task_with_a_damaged_log_fails() {
    let mut server = Setup::plain().slots(1).open();
    let (_, running) = server.start_task("one").await;
    let call = server.spawn_send(msg("two"));
    server.store.until("accept", 2).await;
    server.store.inject_faults([WorkFault::EmptyLog]);
    running.end(done());
    let failed = task(join(call).await.unwrap());
    assert_eq!(failed.status.state, TaskState::Failed);
    assert!(status_text(&failed).unwrap().contains("could not start this task"), "{:?}", failed.status);
    // The slot has been released.
    server.agent.prepare_turn([], done());
    assert_eq!(server.send_for_task(msg("three")).await.status.state, TaskState::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn freed_slot_wakes_the_claimer() {
    const CALLS: usize = 200;
    let server = Setup::plain().slots(1).open();
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            server.agent.prepare_turn([], done());
            server.spawn_send(msg("hello"))
        })
        .collect();
    // A missed wake-up would cost seconds each time.
    let all = async {
        for call in calls {
            assert_eq!(task(join(call).await.unwrap()).status.state, TaskState::Completed);
        }
    };
    tokio::time::timeout(Duration::from_secs(4), all).await.expect("a freed slot did not wake the claimer");
}
