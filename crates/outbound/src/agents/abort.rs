//! Aborts the whole process on request: for testing how a server survives a poisonous task.

use engine::{Agent, AgentResult, Outcome, Turn};
use protocol::model::AgentSkill;

pub(super) struct Abort;

pub(super) const ABOUT: &str = "Aborts the whole process on request";

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill("abort", "Abort", ABOUT, &["abort"], &["abort"])]
}

impl Agent for Abort {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        if turn.text().starts_with("abort") {
            std::process::abort();
        }
        Ok(Outcome::artifact("echo-result", turn.message.parts.clone()))
    }
}
