//! The agent at `/` when there is no configuration: the other built-in ones behind one door.

use protocol::model::AgentSkill;

use super::{Route, Router};

pub(super) const ABOUT: &str = "Shows what a2ad does: converts money, gives back what it is given, writes slowly, asks before it proceeds";

const SKILLS: [&str; 4] = ["currency", "echo", "slow-writer", "approver"];

pub(super) fn router() -> Router {
    let route =
        |name: &&str| Some(Route::new(skill(name)?, super::builtin(name)?).with_words(super::words(name)));
    Router::new(SKILLS.iter().filter_map(route).collect())
}

pub(super) fn skills() -> Vec<AgentSkill> {
    SKILLS.iter().filter_map(|name| skill(name)).collect()
}

/// The skill an agent is named after, with that agent's modes.
fn skill(name: &str) -> Option<AgentSkill> {
    let info = super::info(name)?;
    let skill = info.skills.into_iter().find(|skill| skill.id == name)?;
    Some(AgentSkill { input_modes: info.input_modes, output_modes: info.output_modes, ..skill })
}
