//! Accepting a message and answering it is one commit where the agent allows it, and nothing is seen before its
//! commit, however it came about.

use futures_util::FutureExt as _;
use protocol::{ListTasks, TaskState};

use crate::common::{Setup, answer, artifact, ask, done, joined, progress, say, working};

#[tokio::test]
async fn an_agent_that_is_ready_costs_one_commit() {
    let house = Setup::overlapping().open();
    house.stage.prepare_turn([working(), artifact("a", "hello")], done());
    let task = house.send_for_task(say("hello")).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(house.store.steps(), ["accept"]);

    house.stage.prepare_turn([working(), artifact("a", "hello")], done());
    let mut frames = house.stream(say("hello")).await.unwrap();
    assert_eq!(frames.lines().await, ["1 task submitted", "2 working", "3 artifact a: hello", "4 completed"]);
    assert_eq!(house.store.steps(), ["accept", "accept"]);

    house.stage.prepare_turn([answer("hello yourself")], done());
    house.send(say("hello")).await.unwrap();
    assert_eq!(house.store.steps(), ["accept", "accept", "accept"]);
}

#[tokio::test]
async fn a_second_turn_that_is_ready_costs_one_more() {
    let house = Setup::overlapping().open();
    house.stage.prepare_turn([], ask("which?"));
    let asked = house.send_for_task(say("one of them")).await;
    house.stage.prepare_turn([artifact("a", "the blue one")], done());
    let told = house.send_for_task(say("blue").to(&asked.id)).await;
    assert_eq!(told.status.state, TaskState::Completed);
    assert_eq!(house.store.steps(), ["accept", "settle"]);
}

#[tokio::test]
async fn an_agent_that_is_not_ready_costs_its_acceptance_and_what_it_says_later() {
    let mut house = Setup::overlapping().open();
    house.stage.prepare_words([progress("begun")]);
    let mut frames = house.stream(say("hello")).await.unwrap();
    assert_eq!(frames.next().await, "1 task submitted");
    assert_eq!(frames.next().await, "2 working: begun");
    assert_eq!(house.store.steps(), ["accept"]);

    let turn = house.stage.turn().await;
    turn.say([artifact("a", "one"), artifact("b", "two")]);
    assert_eq!(frames.next().await, "3 artifact a: one");
    assert_eq!(frames.next().await, "4 artifact b: two");
    turn.end(done());
    assert_eq!(frames.lines().await, ["5 completed"]);
    assert_eq!(house.store.steps(), ["accept", "report", "finish"]);
}

#[tokio::test]
async fn an_agent_that_may_not_overlap_starts_when_its_task_is_recorded() {
    let mut house = Setup::plain().open();
    house.store.close_gate();
    let call = house.send_aside(say("hello"));
    house.store.until_waiting(1).await;
    assert!(house.stage.is_quiet(), "the agent ran before its task was durable");
    house.store.open_gate();
    house.stage.turn().await.end(done());
    joined(call).await.unwrap();
}

#[tokio::test]
async fn a_ready_answer_leaves_when_it_is_durable() {
    let house = Setup::overlapping().open();
    house.store.close_gate();
    house.stage.prepare_turn([artifact("a", "hello")], done());
    let mut call = house.send_aside(say("hello"));
    house.store.until_waiting(1).await;
    assert!((&mut call).now_or_never().is_none(), "the answer left before its commit");
    assert_eq!(house.list(ListTasks::default()).await.unwrap().total_size, 0);
    house.store.open_gate();
    joined(call).await.unwrap();
    assert_eq!(house.count(TaskState::Completed).await, 1);
}

#[tokio::test]
async fn nothing_is_visible_before_its_commit() {
    let mut house = Setup::plain().open();
    let (id, turn) = house.begin("hello").await;
    let mut frames = house.subscribe(&id).await.unwrap();
    assert_eq!(frames.next().await, "2 task working");

    house.store.close_gate();
    turn.say([artifact("a", "hello")]);
    house.store.until_waiting(1).await;
    assert!(frames.is_quiet());
    assert!(house.get(&id).await.unwrap().artifacts.is_empty());
    // What is said and decided meanwhile waits too, and joins the next change.
    turn.say([progress("more")]);
    turn.end(done());
    assert!(frames.is_quiet());

    house.store.open_gate();
    assert_eq!(frames.lines().await, ["3 artifact a: hello", "4 working: more", "5 completed"]);
    assert_eq!(house.store.steps(), ["accept", "report", "finish"]);
}
