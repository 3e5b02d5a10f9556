//! An agent that panics fails its task and nothing else.

use a2ad_engine::{Agent, AgentResult, Outcome, Scope, Turn};
use protocol::{Operation, TaskState};

use crate::common::{Setup, artifact, artifacts, done, join, msg, reply, status_text, task, working};

const SECRET: &str = "the password is swordfish";

#[tokio::test]
async fn panic_at_the_first_poll_fails_the_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        server.agent.prepare_panic(SECRET);
        let failed = server.send_for_task(msg("hello")).await;
        assert_eq!(failed.status.state, TaskState::Failed);
        assert_eq!(status_text(&failed).as_deref(), Some("the agent stopped unexpectedly"));
        server.agent.prepare_turn([], done());
        assert_eq!(server.send_for_task(msg("hello")).await.status.state, TaskState::Completed);
    }
}

#[tokio::test]
async fn panic_during_a_run_keeps_its_updates_and_frees_the_slot() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.slots(1).open();
        server.agent.prepare_updates([working(), artifact("a", "kept")]);
        let call = server.spawn_send(msg("hello"));
        server.agent.turn().await.panic(SECRET);
        let failed = task(join(call).await.unwrap());
        assert_eq!(failed.status.state, TaskState::Failed);
        assert_eq!(artifacts(&failed), [("a".into(), "kept".into())]);
        assert!(!status_text(&failed).unwrap().contains("swordfish"));
        server.agent.prepare_turn([], done());
        assert_eq!(server.send_for_task(msg("hello")).await.status.state, TaskState::Completed);
    }
}

/// Panics before it returns a future.
struct PanicsInRun;

impl Agent for PanicsInRun {
    #[allow(clippy::manual_async_fn, reason = "an async fn would panic when it is polled")]
    fn run(&self, _turn: Turn) -> impl Future<Output = AgentResult<Outcome>> + Send {
        panic!("{SECRET}");
        #[allow(unreachable_code, reason = "gives the function its return type")]
        async {
            Ok(Outcome::done())
        }
    }
}

#[tokio::test]
async fn panic_in_run_before_the_future_exists_fails_the_task() {
    let server = Setup::plain().with("hasty", PanicsInRun).open();
    let scope = Scope::anonymous("default", "hasty");
    let answer = server.call(scope, Operation::SendMessage(msg("hello").into())).await.unwrap();
    assert_eq!(task(reply(answer)).status.state, TaskState::Failed);
}
