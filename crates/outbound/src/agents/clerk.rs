//! Example of delegating: the currency agent does the work, and the clerk signs the result.

use engine::{Agent, ExecutionPolicy, Outcome, Turn, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
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
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        async move {
            let started = turn.reply_text("Handed over to the currency agent");
            let signature = turn.reply_text("Done by the currency agent, signed by the clerk");
            out.working(Some(started)).await;
            match Currency.run(turn, out).await {
                Outcome::Done { .. } => Outcome::Done { message: Some(signature) },
                other => other,
            }
        }
        .boxed()
    }

    fn policy(&self) -> ExecutionPolicy {
        Currency.policy()
    }
}
