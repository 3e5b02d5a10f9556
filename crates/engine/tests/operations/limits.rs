//! A task that outgrows its bound fails and takes no more.

use protocol::{ErrorKind, TaskState};

use crate::common::{Setup, artifact, artifacts, ask, chunk, joined, refused, say, status_text, task};

#[tokio::test]
async fn a_task_that_says_too_much_fails_and_keeps_what_it_had() {
    let mut house = Setup::plain().max_task(4_096).open();
    let call = house.send_aside(say("hello"));
    let turn = house.stage.turn().await;
    turn.say([artifact("a", "kept")]);
    house.store.until("report", 1).await;
    turn.say([chunk("a", &"x".repeat(5_000))]);
    let failed = task(joined(call).await.unwrap());
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed).as_deref(), Some("the task is larger than 4096 bytes"));
    assert_eq!(artifacts(&failed), [("a".into(), "kept".into())]);
    turn.gone().await;
}

#[tokio::test]
async fn a_task_that_has_reached_its_bound_takes_no_more_messages() {
    let house = Setup::plain().max_task(4_096).open();
    house.stage.prepare_turn([], ask("which?"));
    let asked = house.send_for_task(say(&"y".repeat(5_000))).await;
    assert_eq!(asked.status.state, TaskState::InputRequired);
    let refusal = house.send(say("blue").to(&asked.id)).await;
    assert_eq!(refused(refusal), ErrorKind::UnsupportedOperation);
}
