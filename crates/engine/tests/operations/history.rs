//! What a task's history holds, and how much of it is shown.

use protocol::{ListTasks, TaskState};

use crate::common::{House, Setup, ask, done_saying, history, progress, say, working};

/// A task of two turns with progress in both.
async fn talked() -> (House, protocol::Task) {
    let house = Setup::overlapping().open();
    house.stage.prepare_turn([working(), progress("thinking")], ask("which?"));
    let asked = house.send_for_task(say("one of them")).await;
    house.stage.prepare_turn([progress("thinking harder")], done_saying("it is blue"));
    let told = house.send_for_task(say("blue").to(&asked.id)).await;
    (house, told)
}

#[tokio::test]
async fn history_is_what_both_sides_said_in_order_and_not_the_progress() {
    let (house, told) = talked().await;
    assert_eq!(told.status.state, TaskState::Completed);
    assert_eq!(history(&told), ["one of them", "which?", "blue", "it is blue"]);
    assert_eq!(told.status.message.as_ref(), told.history.last());
    for message in told.history.iter().filter(|message| message.role == protocol::Role::User) {
        assert_eq!(message.task_id.as_ref(), Some(&told.id));
        assert_eq!(message.context_id.as_ref(), Some(&told.context_id));
    }
    assert_eq!(house.get(&told.id).await.unwrap(), told);
}

#[tokio::test]
async fn a_caller_gets_the_newest_it_asks_for() {
    let (house, told) = talked().await;
    for (asked, expected) in [
        (Some(0), vec![]),
        (Some(1), vec!["it is blue"]),
        (Some(3), vec!["which?", "blue", "it is blue"]),
        (Some(99), vec!["one of them", "which?", "blue", "it is blue"]),
        (None, vec!["one of them", "which?", "blue", "it is blue"]),
    ] {
        let read = house.get_with(&told.id, asked).await.unwrap();
        assert_eq!(history(&read), expected, "{asked:?}");
        assert_eq!(read.status, told.status);
        let page = house.list(ListTasks { history_length: asked, ..ListTasks::default() }).await.unwrap();
        assert_eq!(history(&page.tasks[0]), expected, "{asked:?}");
    }
}

#[tokio::test]
async fn a_send_gets_the_newest_it_asks_for() {
    let house = Setup::overlapping().open();
    for (length, expected) in [(0, vec![]), (1, vec!["there"]), (2, vec!["hello", "there"])] {
        house.stage.prepare_turn([], done_saying("there"));
        assert_eq!(history(&house.send_for_task(say("hello").history(length)).await), expected);
        let submitted = house.send_for_task(say("hello").history(length).at_once()).await;
        assert_eq!(history(&submitted), if length == 0 { vec![] } else { vec!["hello"] });
    }
}
