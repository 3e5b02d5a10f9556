//! An agent that panics fails its task and nothing else.

use a2ad_engine::{Agent, Outcome, Scope, Turn, Updates};
use futures_util::future::BoxFuture;
use protocol::{Operation, TaskState};

use crate::common::{Setup, artifact, artifacts, done, joined, reply, say, status_text, task, working};

const SECRET: &str = "the password is swordfish";

#[tokio::test]
async fn a_panic_at_the_first_look_fails_the_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        house.stage.prepare_panic(SECRET);
        let failed = house.send_for_task(say("hello")).await;
        assert_eq!(failed.status.state, TaskState::Failed);
        assert_eq!(status_text(&failed).as_deref(), Some("the agent stopped unexpectedly"));
        house.stage.prepare_turn([], done());
        assert_eq!(house.send_for_task(say("hello")).await.status.state, TaskState::Completed);
    }
}

#[tokio::test]
async fn a_panic_on_the_way_keeps_what_was_said_and_frees_the_slot() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.slots(1).open();
        house.stage.prepare_words([working(), artifact("a", "kept")]);
        let call = house.send_aside(say("hello"));
        house.stage.turn().await.panic(SECRET);
        let failed = task(joined(call).await.unwrap());
        assert_eq!(failed.status.state, TaskState::Failed);
        assert_eq!(artifacts(&failed), [("a".into(), "kept".into())]);
        assert!(!status_text(&failed).unwrap().contains("swordfish"));
        house.stage.prepare_turn([], done());
        assert_eq!(house.send_for_task(say("hello")).await.status.state, TaskState::Completed);
    }
}

/// Panics before there is a future to poll.
struct Hasty;

impl Agent for Hasty {
    fn run(&self, _turn: Turn, _out: Updates) -> BoxFuture<'static, Outcome> {
        panic!("{SECRET}")
    }
}

#[tokio::test]
async fn a_panic_before_the_first_look_fails_the_task() {
    let house = Setup::plain().with("hasty", Hasty).open();
    let scope = Scope::anonymous("default", "hasty");
    let answer = house.call(scope, Operation::SendMessage(say("hello").into())).await.unwrap();
    assert_eq!(task(reply(answer)).status.state, TaskState::Failed);
}
