//! Delegates: has the currency agent do the work and signs what comes of it.

use engine::{Agent, ExecutionPolicy, Outcome, Turn, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::model::AgentSkill;

use super::Currency;

/// The clerk agent.
pub struct Clerk;

pub(super) const ABOUT: &str = "Has the currency agent do the work and signs what comes of it";

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill("clerk", "Clerk", ABOUT, &["delegate"], &["10 USD in INR"])]
}

impl Agent for Clerk {
    /// The other agent takes the very same turn: what it says and asks is this task's, and so is what it saves.
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
