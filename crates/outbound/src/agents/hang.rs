//! Never ends by itself: for testing how a server treats the tasks beside one that hangs. It stops when its run is
//! stopped from outside.

use engine::{Agent, AgentResult, Outcome, Turn};
use protocol::model::AgentSkill;

pub(super) struct Hang;

pub(super) const ABOUT: &str = "Never ends by itself";

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill("hang", "Hang", ABOUT, &["hang"], &["hang"])]
}

impl Agent for Hang {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        turn.record().working().await?;
        turn.cancel.cancelled().await;
        Ok(Outcome::done())
    }
}
