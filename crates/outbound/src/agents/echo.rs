//! Returns the received parts. A text that starts with `hold` keeps the task working until it is canceled.

use engine::{Agent, AgentResult, ExecutionPolicy, Outcome, Turn};
use protocol::model::AgentSkill;

/// Returns the received parts.
pub struct Echo;

pub(super) const ABOUT: &str = "Gives back what it is given";

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill("echo", "Echo", ABOUT, &["demo"], &["hello", "hold on"])]
}

impl Agent for Echo {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        turn.record().working().await?;
        if turn.text().starts_with("hold") {
            turn.cancel.cancelled().await;
        }
        Ok(Outcome::artifact("echo-result", turn.message.parts.clone()))
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_overlap(true)
    }
}
