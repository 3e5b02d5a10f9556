//! Example of delegating: the currency agent does the work, and the clerk signs the result.

use engine::{Agent, AgentResult, ExecutionPolicy, Outcome, Turn};
use protocol::model::AgentSkill;

use super::Currency;

/// Delegates to the currency agent.
pub struct Clerk;

pub(super) const ABOUT: &str = "Delegates to the currency agent and signs the result";

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill("clerk", "Clerk", ABOUT, &["delegate"], &["10 USD in INR"])]
}

impl Agent for Clerk {
    /// The other agent runs the same turn: its updates, questions and checkpoints belong to this task.
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        turn.progress("Handed over to the currency agent").await?;
        let signature = turn.reply("Done by the currency agent, signed by the clerk");
        Ok(match Currency.run(turn).await? {
            Outcome::Done { artifacts, .. } => Outcome::Done { artifacts, message: Some(signature) },
            other => other,
        })
    }

    fn policy(&self) -> ExecutionPolicy {
        Currency.policy()
    }
}
