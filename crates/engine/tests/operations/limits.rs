//! A task that outgrows its bound fails and takes no more.

use a2ad_engine::{Outcome, Update};
use protocol::{ErrorKind, ListTasks, TaskState};

use crate::common::{
    Setup, answer, artifact, artifacts, ask, chunk, done, joined, refusal, say, status_text, task, try_again,
};

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
async fn an_agent_that_answers_at_once_is_held_to_the_bound_too() {
    let house = Setup::overlapping().max_task(4_096).open();
    let too_much = "x".repeat(5_000);
    let turns: [(Vec<Update>, Outcome); 4] = [
        (vec![artifact("a", &too_much)], done()),
        (vec![answer(&too_much)], done()),
        (vec![], ask(&too_much)),
        (vec![], try_again(&too_much)),
    ];
    for (said, outcome) in turns {
        house.stage.prepare_turn(said, outcome);
        let failed = house.send_for_task(say("hello")).await;
        assert_eq!(failed.status.state, TaskState::Failed);
        assert_eq!(status_text(&failed).as_deref(), Some("the task is larger than 4096 bytes"));
        assert!(failed.artifacts.is_empty());
    }
    // What the message and the answer take together counts.
    house.stage.prepare_turn([artifact("a", &"x".repeat(2_500))], done());
    assert_eq!(house.send_for_task(say(&"y".repeat(2_500))).await.status.state, TaskState::Failed);
    house.stage.prepare_turn([artifact("a", &"x".repeat(2_500))], done());
    assert_eq!(house.send_for_task(say("hello")).await.status.state, TaskState::Completed);
}

#[tokio::test]
async fn a_message_that_is_larger_than_a_task_may_be_is_refused() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.max_task(4_096).open();
        let refusal = refusal(house.send(say(&"y".repeat(5_000))).await);
        assert_eq!(refusal.kind, ErrorKind::InvalidParams);
        assert_eq!(refusal.violations[0].field, "message.parts");
        assert!(refusal.violations[0].problem.contains("4096"), "{:?}", refusal.violations);
        assert!(house.stage.is_quiet());
        assert_eq!(house.list(ListTasks::default()).await.unwrap().total_size, 0);
    }
}

#[tokio::test]
async fn a_task_takes_only_messages_that_it_has_room_for() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.max_task(4_096).open();
        house.stage.prepare_turn([], ask("which?"));
        let asked = house.send_for_task(say(&"y".repeat(2_000))).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        house.stage.turn().await;
        let refusal = refusal(house.send(say(&"z".repeat(3_000)).to(&asked.id)).await);
        assert_eq!(
            (refusal.kind, refusal.violations[0].field.as_str()),
            (ErrorKind::InvalidParams, "message.parts")
        );
        assert!(refusal.violations[0].problem.contains("may hold 4096"), "{:?}", refusal.violations);
        // A shorter one answers the question, and its repetition is known although there would be no room for another.
        let short = say(&"z".repeat(800)).to(&asked.id);
        house.stage.prepare_turn([], done());
        let ended = house.send_for_task(short.clone()).await;
        assert_eq!(ended.status.state, TaskState::Completed);
        house.stage.turn().await;
        assert_eq!(house.send_for_task(short).await, ended);
    }
}

#[tokio::test]
async fn a_task_at_work_takes_only_messages_that_it_has_room_for() {
    let mut house = Setup::plain().max_task(4_096).open();
    let (id, turn) = house.begin("hello").await;
    let refusal = refusal(house.send(say(&"z".repeat(5_000)).to(&id).at_once()).await);
    assert_eq!(
        (refusal.kind, refusal.violations[0].field.as_str()),
        (ErrorKind::InvalidParams, "message.parts")
    );
    house.send(say("more").to(&id).at_once()).await.unwrap();
    turn.end(done());
    house.store.until("finish", 1).await;
}
