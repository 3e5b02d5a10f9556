//! Aborts the whole process on request: for testing how a server survives a poisonous task.

use engine::{Agent, Outcome, Turn, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::model::AgentSkill;

pub(super) struct Abort;

pub(super) const ABOUT: &str = "Aborts the whole process on request";

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
