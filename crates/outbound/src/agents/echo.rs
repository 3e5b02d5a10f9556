//! Returns the received parts. A text that starts with `hold` keeps the task working until it is canceled.

use engine::{Agent, ExecutionPolicy, Outcome, Turn, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::model::AgentSkill;

/// Returns the received parts.
pub struct Echo;

pub(super) const ABOUT: &str = "Gives back what it is given";

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill("echo", "Echo", ABOUT, &["demo"], &["hello", "hold on"])]
}

impl Agent for Echo {
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        async move {
            out.working(None).await;
            if turn.message.text().starts_with("hold") {
                turn.cancel.cancelled().await;
            }
            out.artifact(super::result(&turn, "echo-result", turn.message.parts.clone())).await;
            Outcome::done()
        }
        .boxed()
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy { overlap: true, ..ExecutionPolicy::default() }
    }
}
