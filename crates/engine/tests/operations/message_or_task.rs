//! The agent's first word decides whether there is a task for clients to see (architecture, "message or task").

use std::time::Duration;

use protocol::{ErrorKind, ListTasks, Reply, TaskId, TaskState};

use crate::common::{
    House, Setup, answer, done, joined, progress, refused, save, say, stand_still, status_text, working,
};

async fn is_nowhere(house: &House, id: &TaskId) {
    assert_eq!(refused(house.get(id).await), ErrorKind::TaskNotFound);
    assert_eq!(refused(house.cancel(id).await), ErrorKind::TaskNotFound);
    assert_eq!(refused(house.subscribe(id).await), ErrorKind::TaskNotFound);
    assert_eq!(refused(house.send(say("more").to(id)).await), ErrorKind::TaskNotFound);
    assert_eq!(house.list(ListTasks::default()).await.unwrap().total_size, 0);
}

#[tokio::test]
async fn a_message_said_first_is_the_whole_answer() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.open();
        house.stage.prepare_turn([answer("hello yourself")], done());
        let reply = house.send(say("hello")).await.unwrap();
        let Reply::SentMessage(message) = reply else { panic!("{reply:?}") };
        assert_eq!((message.text().as_str(), message.task_id), ("hello yourself", None));
        let turn = house.stage.turn().await;
        is_nowhere(&house, &turn.task_id).await;

        house.stage.prepare_turn([answer("hello again")], done());
        let mut frames = house.stream(say("hello")).await.unwrap();
        assert_eq!(frames.lines().await, ["2 message: hello again"]);
    }
}

#[tokio::test]
async fn an_undecided_task_does_not_exist_for_anybody() {
    let mut house = Setup::plain().open();
    let call = house.send_aside(say("hello"));
    let turn = house.stage.turn().await;
    is_nowhere(&house, &turn.task_id).await;
    // Saving is not a word to the client.
    turn.say([save("place")]);
    house.store.until("report", 1).await;
    is_nowhere(&house, &turn.task_id).await;
    turn.say([working()]);
    house.store.until("report", 2).await;
    assert_eq!(house.get(&turn.task_id).await.unwrap().status.state, TaskState::Working);
    turn.end(done());
    joined(call).await.unwrap();
}

#[tokio::test]
async fn a_message_said_later_completes_the_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        house.stage.prepare_turn([working(), answer("hello yourself")], done());
        let task = house.send_for_task(say("hello")).await;
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(status_text(&task).as_deref(), Some("hello yourself"));
        assert_eq!(house.get(&task.id).await.unwrap(), task);
    }
}

#[tokio::test]
async fn an_outcome_alone_makes_a_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        house.stage.prepare_turn([], done());
        let task = house.send_for_task(say("hello")).await;
        assert_eq!(house.get(&task.id).await.unwrap().status.state, TaskState::Completed);
    }
}

#[tokio::test]
async fn the_first_frame_of_a_stream_waits_for_the_decision() {
    let mut house = Setup::plain().open();
    let mut frames = house.stream(say("hello")).await.unwrap();
    let turn = house.stage.turn().await;
    assert!(frames.is_quiet());
    turn.say([progress("begun")]);
    assert_eq!(frames.next().await, "1 task submitted");
    assert_eq!(frames.next().await, "2 working: begun");
}

#[tokio::test(start_paused = true)]
async fn a_stream_shows_a_task_when_the_decision_takes_long() {
    let _time = stand_still();
    let mut house = Setup::plain().open();
    let mut frames = house.stream(say("hello")).await.unwrap();
    let turn = house.stage.turn().await;
    tokio::time::advance(Duration::from_millis(98)).await;
    assert!(frames.is_quiet());
    assert_eq!(refused(house.get(&turn.task_id).await), ErrorKind::TaskNotFound);
    tokio::time::advance(Duration::from_millis(4)).await;
    assert_eq!(frames.next().await, "1 task submitted");
    assert_eq!(frames.next().await, "2 working");
    turn.say([answer("too late to be a message")]);
    assert_eq!(frames.lines().await, ["3 completed: too late to be a message"]);
    assert!(house.get(&turn.task_id).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_gets_a_message_however_late() {
    let _time = stand_still();
    let mut house = Setup::plain().open();
    let call = house.send_aside(say("hello"));
    let turn = house.stage.turn().await;
    tokio::time::advance(Duration::from_secs(10)).await;
    is_nowhere(&house, &turn.task_id).await;
    turn.say([answer("at last")]);
    assert!(
        matches!(joined(call).await.unwrap(), Reply::SentMessage(message) if message.text() == "at last")
    );
}

#[tokio::test]
async fn a_caller_that_does_not_wait_sees_submitted_and_working() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.open();
        let task = house.send_for_task(say("hello").at_once()).await;
        assert_eq!(task.status.state, TaskState::Working);
        assert_eq!(house.store.steps(), ["accept"]);
        let turn = house.stage.turn().await;
        let mut frames = house.subscribe(&task.id).await.unwrap();
        assert_eq!(frames.next().await, "2 task working");
        // It is a task for good, and a bare working is no news.
        turn.say([working(), answer("a message after all")]);
        assert_eq!(frames.lines().await, ["3 completed: a message after all"]);
    }
}
