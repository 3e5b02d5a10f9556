//! What a turn does whose skill is not known yet.

use std::time::Duration;

use crate::agent::{Agent, AgentResult, Outcome, Turn};

/// How long such a turn waits: with the delays between attempts, longer than a server may take to start.
const DELAY: Duration = Duration::from_secs(10);

/// Waits for servers that start, by name. The next attempt has the skills that are known then.
pub(super) struct StartingSkills(pub(super) String);

impl Agent for StartingSkills {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        tokio::select! {
            () = tokio::time::sleep(DELAY) => {}
            () = turn.cancel.cancelled() => {}
        }
        Ok(Outcome::retry(format!("the skill is not available yet: {} is starting", self.0)))
    }
}
