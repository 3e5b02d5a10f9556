//! Contents of a task's history, and how much of it is returned.

use protocol::{ListTasks, TaskState};

use crate::common::{Setup, TestServer, done_with, history, msg, need_input, progress, working};

/// A task of two turns, both with progress messages.
async fn two_turn_task() -> (TestServer, protocol::Task) {
    let server = Setup::overlapping().open();
    server.agent.prepare_turn([working(), progress("thinking")], need_input("which?"));
    let asked = server.send_for_task(msg("one of them")).await;
    server.agent.prepare_turn([progress("thinking harder")], done_with("it is blue"));
    let updated = server.send_for_task(msg("blue").to(&asked.id)).await;
    (server, updated)
}

#[tokio::test]
async fn history_has_both_sides_in_order_without_progress() {
    let (server, updated) = two_turn_task().await;
    assert_eq!(updated.status.state, TaskState::Completed);
    assert_eq!(history(&updated), ["one of them", "which?", "blue", "it is blue"]);
    assert_eq!(updated.status.message.as_ref(), updated.history.last());
    for message in updated.history.iter().filter(|message| message.role == protocol::Role::User) {
        assert_eq!(message.task_id.as_ref(), Some(&updated.id));
        assert_eq!(message.context_id.as_ref(), Some(&updated.context_id));
    }
    assert_eq!(server.get(&updated.id).await.unwrap(), updated);
}

#[tokio::test]
async fn get_returns_the_requested_number_of_newest_messages() {
    let (server, updated) = two_turn_task().await;
    for (asked, expected) in [
        (Some(0), vec![]),
        (Some(1), vec!["it is blue"]),
        (Some(3), vec!["which?", "blue", "it is blue"]),
        (Some(99), vec!["one of them", "which?", "blue", "it is blue"]),
        (None, vec!["one of them", "which?", "blue", "it is blue"]),
    ] {
        let read = server.get_with(&updated.id, asked).await.unwrap();
        assert_eq!(history(&read), expected, "{asked:?}");
        assert_eq!(read.status, updated.status);
        let page = server.list(ListTasks { history_length: asked, ..ListTasks::default() }).await.unwrap();
        assert_eq!(history(&page.tasks[0]), expected, "{asked:?}");
    }
}

#[tokio::test]
async fn send_returns_the_requested_number_of_newest_messages() {
    let server = Setup::overlapping().open();
    for (length, expected) in [(0, vec![]), (1, vec!["there"]), (2, vec!["hello", "there"])] {
        server.agent.prepare_turn([], done_with("there"));
        assert_eq!(history(&server.send_for_task(msg("hello").history(length)).await), expected);
        let submitted = server.send_for_task(msg("hello").history(length).return_immediately()).await;
        assert_eq!(history(&submitted), if length == 0 { vec![] } else { vec!["hello"] });
    }
}
