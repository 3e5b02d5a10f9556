//! Aborts the whole process when it is told to. For the test of what a poisonous task does to a server.

use engine::{Agent, Outcome, Turn, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::model::AgentSkill;

/// The agent that aborts.
pub(super) struct Abort;

pub(super) const ABOUT: &str = "Aborts the whole process when told to";

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill("abort", "Abort", ABOUT, &["abort"], &["abort"])]
}

impl Agent for Abort {
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        async move {
            if turn.message.text().starts_with("abort") {
                std::process::abort();
            }
            out.artifact(super::result(&turn, "echo-result", turn.message.parts.clone())).await;
            Outcome::done()
        }
        .boxed()
    }
}
