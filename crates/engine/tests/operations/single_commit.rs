//! Accepting a message and its reply are one commit where the agent allows it, and nothing is visible before
//! its commit.

use futures_util::FutureExt as _;
use protocol::{ListTasks, TaskState};

use crate::common::{Setup, artifact, bare_message, done, join, msg, need_input, progress, working};

#[tokio::test]
async fn ready_agent_needs_one_commit() {
    let server = Setup::overlapping().open();
    server.agent.prepare_turn([working(), artifact("a", "hello")], done());
    let task = server.send_for_task(msg("hello")).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(server.store.steps(), ["accept"]);

    server.agent.prepare_turn([working(), artifact("a", "hello")], done());
    let mut frames = server.stream(msg("hello")).await.unwrap();
    assert_eq!(frames.lines().await, ["1 task submitted", "2 working", "3 artifact a: hello", "4 completed"]);
    assert_eq!(server.store.steps(), ["accept", "accept"]);

    server.agent.prepare_turn([bare_message("hello yourself")], done());
    server.send(msg("hello")).await.unwrap();
    assert_eq!(server.store.steps(), ["accept", "accept", "accept"]);
}

#[tokio::test]
async fn ready_second_turn_needs_one_more_commit() {
    let server = Setup::overlapping().open();
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("one of them")).await;
    server.agent.prepare_turn([artifact("a", "the blue one")], done());
    let updated = server.send_for_task(msg("blue").to(&asked.id)).await;
    assert_eq!(updated.status.state, TaskState::Completed);
    assert_eq!(server.store.steps(), ["accept", "settle"]);
}

#[tokio::test]
async fn pending_agent_needs_one_commit_to_accept_and_more_for_later_updates() {
    let mut server = Setup::overlapping().open();
    server.agent.prepare_updates([progress("begun")]);
    let mut frames = server.stream(msg("hello")).await.unwrap();
    assert_eq!(frames.next().await, "1 task submitted");
    assert_eq!(frames.next().await, "2 working: begun");
    assert_eq!(server.store.steps(), ["accept"]);

    let turn = server.agent.turn().await;
    turn.send([artifact("a", "one"), artifact("b", "two")]);
    assert_eq!(frames.next().await, "3 artifact a: one");
    assert_eq!(frames.next().await, "4 artifact b: two");
    turn.end(done());
    assert_eq!(frames.lines().await, ["5 completed"]);
    assert_eq!(server.store.steps(), ["accept", "report", "finish"]);
}

#[tokio::test]
async fn agent_without_overlap_starts_after_the_commit() {
    let mut server = Setup::plain().open();
    server.store.block_commits();
    let call = server.spawn_send(msg("hello"));
    server.store.until_blocked(1).await;
    assert!(server.agent.is_idle(), "the agent ran before its task was durable");
    server.store.unblock_commits();
    server.agent.turn().await.end(done());
    join(call).await.unwrap();
}

#[tokio::test]
async fn reply_is_sent_only_when_durable() {
    let server = Setup::overlapping().open();
    server.store.block_commits();
    server.agent.prepare_turn([artifact("a", "hello")], done());
    let mut call = server.spawn_send(msg("hello"));
    server.store.until_blocked(1).await;
    assert!((&mut call).now_or_never().is_none(), "the reply was sent before its commit");
    assert_eq!(server.list(ListTasks::default()).await.unwrap().total_size, 0);
    server.store.unblock_commits();
    join(call).await.unwrap();
    assert_eq!(server.count(TaskState::Completed).await, 1);
}

#[tokio::test]
async fn nothing_is_visible_before_its_commit() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    let mut frames = server.subscribe(&id).await.unwrap();
    assert_eq!(frames.next().await, "2 task working");

    server.store.block_commits();
    turn.send([artifact("a", "hello")]);
    server.store.until_blocked(1).await;
    assert!(frames.is_idle());
    assert!(server.get(&id).await.unwrap().artifacts.is_empty());
    // Updates and the outcome sent meanwhile join the next change.
    turn.send([progress("more")]);
    turn.end(done());
    assert!(frames.is_idle());

    server.store.unblock_commits();
    assert_eq!(frames.lines().await, ["3 artifact a: hello", "4 working: more", "5 completed"]);
    assert_eq!(server.store.steps(), ["accept", "report", "finish"]);
}
