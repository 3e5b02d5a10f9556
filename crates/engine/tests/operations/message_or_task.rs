//! The agent's first update decides the reply: a bare message (the task stays hidden) or a visible task.

use std::time::Duration;

use protocol::{Dialect, ErrorKind, ListTasks, Reply, TaskId, TaskState};

use crate::common::{
    Setup, TestServer, artifact, artifacts, bare_message, call_in, done, join, msg, prevent_auto_advance,
    progress, refused, reply, save, status_text, task, working,
};

async fn assert_not_found(server: &TestServer, id: &TaskId) {
    assert_eq!(refused(server.get(id).await), ErrorKind::TaskNotFound);
    assert_eq!(refused(server.cancel(id).await), ErrorKind::TaskNotFound);
    assert_eq!(refused(server.subscribe(id).await), ErrorKind::TaskNotFound);
    assert_eq!(refused(server.send(msg("more").to(id)).await), ErrorKind::TaskNotFound);
    assert_eq!(server.list(ListTasks::default()).await.unwrap().total_size, 0);
}

#[tokio::test]
async fn message_as_first_update_is_the_whole_reply() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        server.agent.prepare_turn([bare_message("hello yourself")], done());
        let reply = server.send(msg("hello")).await.unwrap();
        let Reply::SentMessage(message) = reply else { panic!("{reply:?}") };
        assert_eq!((message.text().as_str(), message.task_id), ("hello yourself", None));
        let turn = server.agent.turn().await;
        assert_not_found(&server, &turn.task_id).await;

        server.agent.prepare_turn([bare_message("hello again")], done());
        let mut frames = server.stream(msg("hello")).await.unwrap();
        assert_eq!(frames.lines().await, ["2 message: hello again"]);
    }
}

#[tokio::test]
async fn undecided_task_is_not_found() {
    let mut server = Setup::plain().open();
    let call = server.spawn_send(msg("hello"));
    let turn = server.agent.turn().await;
    assert_not_found(&server, &turn.task_id).await;
    // A checkpoint does not decide the visibility.
    turn.send([save("place")]);
    server.store.until("report", 1).await;
    assert_not_found(&server, &turn.task_id).await;
    turn.send([working()]);
    server.store.until("report", 2).await;
    assert_eq!(server.get(&turn.task_id).await.unwrap().status.state, TaskState::Working);
    turn.end(done());
    join(call).await.unwrap();
}

#[tokio::test]
async fn message_after_another_update_completes_the_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        server.agent.prepare_turn([working(), bare_message("hello yourself")], done());
        let task = server.send_for_task(msg("hello")).await;
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(status_text(&task).as_deref(), Some("hello yourself"));
        assert_eq!(server.get(&task.id).await.unwrap(), task);
    }
}

#[tokio::test]
async fn outcome_without_updates_makes_a_visible_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        server.agent.prepare_turn([], done());
        let task = server.send_for_task(msg("hello")).await;
        assert_eq!(server.get(&task.id).await.unwrap().status.state, TaskState::Completed);
    }
}

#[tokio::test]
async fn first_frame_waits_for_the_visibility_decision() {
    let mut server = Setup::plain().open();
    let mut frames = server.stream(msg("hello")).await.unwrap();
    let turn = server.agent.turn().await;
    assert!(frames.is_idle());
    turn.send([progress("begun")]);
    assert_eq!(frames.next().await, "1 task submitted");
    assert_eq!(frames.next().await, "2 working: begun");
}

#[tokio::test(start_paused = true)]
async fn stream_makes_an_undecided_task_visible_after_100_ms() {
    let _time = prevent_auto_advance();
    let mut server = Setup::plain().open();
    let mut frames = server.stream(msg("hello")).await.unwrap();
    let turn = server.agent.turn().await;
    tokio::time::advance(Duration::from_millis(98)).await;
    assert!(frames.is_idle());
    assert_eq!(refused(server.get(&turn.task_id).await), ErrorKind::TaskNotFound);
    tokio::time::advance(Duration::from_millis(4)).await;
    assert_eq!(frames.next().await, "1 task submitted");
    assert_eq!(frames.next().await, "2 working");
    turn.send([bare_message("too late to be a message")]);
    assert_eq!(frames.lines().await, ["3 completed: too late to be a message"]);
    assert!(server.get(&turn.task_id).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn blocking_send_gets_a_bare_message_however_late() {
    let _time = prevent_auto_advance();
    let mut server = Setup::plain().open();
    let call = server.spawn_send(msg("hello"));
    let turn = server.agent.turn().await;
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_not_found(&server, &turn.task_id).await;
    turn.send([bare_message("at last")]);
    assert!(matches!(join(call).await.unwrap(), Reply::SentMessage(message) if message.text() == "at last"));
}

#[tokio::test]
async fn immediate_send_records_submitted_and_working() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        let task = server.send_for_task(msg("hello").return_immediately()).await;
        assert_eq!(task.status.state, TaskState::Working);
        assert_eq!(server.store.steps(), ["accept"]);
        let turn = server.agent.turn().await;
        let mut frames = server.subscribe(&task.id).await.unwrap();
        assert_eq!(frames.next().await, "2 task working");
        // The task stays visible, and a repeated `working` is no event.
        turn.send([working(), bare_message("a message after all")]);
        assert_eq!(frames.lines().await, ["3 completed: a message after all"]);
    }
}

#[tokio::test]
async fn draft_gets_a_completed_task_with_an_artifact_instead_of_a_bare_message() {
    for setup in [Setup::overlapping, Setup::plain] {
        let mut server = setup().open();
        // A checkpoint does not count as the first update in any dialect.
        for (number, first) in [vec![], vec![save("place")]].into_iter().enumerate() {
            let name = format!("t-{number}");
            server.agent.prepare_turn(first.into_iter().chain([bare_message("hello yourself")]), done());
            let answered =
                server.send_as(call_in(Dialect::Draft), msg("hello").client_task(&name)).await.unwrap();
            let updated = task(reply(answered));
            assert_eq!((updated.id.as_str(), updated.status.state), (name.as_str(), TaskState::Completed));
            assert_eq!(status_text(&updated).as_deref(), Some("hello yourself"));
            assert_eq!(updated.artifacts.len(), 1, "{number}");
            assert_eq!(
                Some(&updated.artifacts[0].parts),
                updated.status.message.as_ref().map(|message| &message.parts)
            );
            assert_eq!(server.get(&updated.id).await.unwrap(), updated);
            server.agent.turn().await;
        }
        assert_eq!(server.count(TaskState::Completed).await, 2);

        server.agent.prepare_turn([bare_message("hello again")], done());
        let mut frames = server.stream_in(Dialect::Draft, msg("hello").client_task("stream")).await.unwrap();
        let lines = frames.lines().await;
        assert_eq!(
            lines,
            ["1 task submitted", "2 working", "3 artifact answer: hello again", "4 completed: hello again"]
        );
        assert_eq!(server.get(&"stream".into()).await.unwrap().artifacts.len(), 1);
    }
}

#[tokio::test]
async fn draft_gets_an_artifact_for_a_bare_message_after_queueing_and_in_later_turns() {
    let mut server = Setup::plain().slots(1).open();
    let (_, running) = server.start_task("something else").await;
    let queued = server.spawn_send_as(call_in(Dialect::Draft), msg("hello").client_task("t-1"));
    server.store.until("accept", 2).await;
    server.agent.prepare_turn([bare_message("one")], done());
    running.end(done());
    let updated = task(reply(join(queued).await.unwrap()));
    assert_eq!(artifacts(&updated), [("answer".into(), "one".into())]);
    server.agent.turn().await;
    server.agent.prepare_turn([bare_message("two")], done());
    let again = server.send_as(call_in(Dialect::Draft), msg("more").client_task("t-1")).await.unwrap();
    let updated = task(reply(again));
    assert_eq!((status_text(&updated).as_deref(), updated.history.len()), (Some("two"), 4));
    assert!(artifacts(&updated).iter().any(|(_, text)| text == "two"));
}

#[tokio::test]
async fn draft_gets_no_artifact_for_a_message_after_another_update() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        server.agent.prepare_turn([artifact("a", "b"), bare_message("that is it")], done());
        let answered =
            server.send_as(call_in(Dialect::Draft), msg("hello").client_task("t-1")).await.unwrap();
        let updated = task(reply(answered));
        assert_eq!(artifacts(&updated), [("a".into(), "b".into())]);
        assert_eq!(status_text(&updated).as_deref(), Some("that is it"));
    }
}

#[tokio::test]
async fn dialects_with_bare_messages_get_them() {
    for setup in [Setup::overlapping, Setup::plain] {
        for dialect in [Dialect::V03, Dialect::V03Proto, Dialect::V1] {
            let mut server = setup().open();
            server.agent.prepare_turn([save("place"), bare_message("hello yourself")], done());
            let updated = reply(server.send_as(call_in(dialect), msg("hello")).await.unwrap());
            assert!(
                matches!(&updated, Reply::SentMessage(message) if message.text() == "hello yourself"),
                "{updated:?}"
            );
            let turn = server.agent.turn().await;
            assert_not_found(&server, &turn.task_id).await;
            server.agent.prepare_turn([bare_message("hello again")], done());
            let mut frames = server.stream_in(dialect, msg("hello")).await.unwrap();
            assert_eq!(frames.lines().await, ["2 message: hello again"]);
        }
    }
}
