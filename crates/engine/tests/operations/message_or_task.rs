//! The agent's first word decides whether there is a task for clients to see (architecture, "message or task").

use std::time::Duration;

use protocol::{Dialect, ErrorKind, ListTasks, Reply, TaskId, TaskState};

use crate::common::{
    House, Setup, answer, artifact, artifacts, done, joined, progress, refused, reply, save, say, speaking,
    stand_still, status_text, task, working,
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

#[tokio::test]
async fn a_generation_without_bare_messages_gets_a_completed_task_and_an_artifact() {
    for setup in [Setup::overlapping, Setup::plain] {
        let mut house = setup().open();
        // Saving is not a word to the client, in whatever generation.
        for (number, first) in [vec![], vec![save("place")]].into_iter().enumerate() {
            let name = format!("t-{number}");
            house.stage.prepare_turn(first.into_iter().chain([answer("hello yourself")]), done());
            let answered = house.send_as(speaking(Dialect::Draft), say("hello").named(&name)).await.unwrap();
            let told = task(reply(answered));
            assert_eq!((told.id.as_str(), told.status.state), (name.as_str(), TaskState::Completed));
            assert_eq!(status_text(&told).as_deref(), Some("hello yourself"));
            assert_eq!(told.artifacts.len(), 1, "{number}");
            assert_eq!(Some(&told.artifacts[0].parts), told.status.message.as_ref().map(|said| &said.parts));
            assert_eq!(house.get(&told.id).await.unwrap(), told);
            house.stage.turn().await;
        }
        assert_eq!(house.count(TaskState::Completed).await, 2);

        house.stage.prepare_turn([answer("hello again")], done());
        let mut frames = house.stream_in(Dialect::Draft, say("hello").named("stream")).await.unwrap();
        let lines = frames.lines().await;
        assert_eq!(
            lines,
            ["1 task submitted", "2 working", "3 artifact answer: hello again", "4 completed: hello again"]
        );
        assert_eq!(house.get(&"stream".into()).await.unwrap().artifacts.len(), 1);
    }
}

#[tokio::test]
async fn a_bare_answer_in_the_queue_or_a_later_turn_is_spelled_out_too() {
    let mut house = Setup::plain().slots(1).open();
    let (_, running) = house.begin("something else").await;
    let queued = house.send_aside_as(speaking(Dialect::Draft), say("hello").named("t-1"));
    house.store.until("accept", 2).await;
    house.stage.prepare_turn([answer("one")], done());
    running.end(done());
    let told = task(reply(joined(queued).await.unwrap()));
    assert_eq!(artifacts(&told), [("answer".into(), "one".into())]);
    house.stage.turn().await;
    house.stage.prepare_turn([answer("two")], done());
    let again = house.send_as(speaking(Dialect::Draft), say("more").named("t-1")).await.unwrap();
    let told = task(reply(again));
    assert_eq!((status_text(&told).as_deref(), told.history.len()), (Some("two"), 4));
    assert!(artifacts(&told).iter().any(|(_, text)| text == "two"));
}

#[tokio::test]
async fn a_message_said_later_is_no_artifact() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        house.stage.prepare_turn([artifact("a", "b"), answer("that is it")], done());
        let answered = house.send_as(speaking(Dialect::Draft), say("hello").named("t-1")).await.unwrap();
        let told = task(reply(answered));
        assert_eq!(artifacts(&told), [("a".into(), "b".into())]);
        assert_eq!(status_text(&told).as_deref(), Some("that is it"));
    }
}

#[tokio::test]
async fn generations_with_bare_messages_get_them() {
    for setup in [Setup::overlapping, Setup::plain] {
        for dialect in [Dialect::V03, Dialect::V03Proto, Dialect::V1] {
            let mut house = setup().open();
            house.stage.prepare_turn([save("place"), answer("hello yourself")], done());
            let told = reply(house.send_as(speaking(dialect), say("hello")).await.unwrap());
            assert!(
                matches!(&told, Reply::SentMessage(message) if message.text() == "hello yourself"),
                "{told:?}"
            );
            let turn = house.stage.turn().await;
            is_nowhere(&house, &turn.task_id).await;
            house.stage.prepare_turn([answer("hello again")], done());
            let mut frames = house.stream_in(dialect, say("hello")).await.unwrap();
            assert_eq!(frames.lines().await, ["2 message: hello again"]);
        }
    }
}
