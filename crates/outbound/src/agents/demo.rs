//! The default agent when there is no configuration: a router to the other built-in agents.

use protocol::model::AgentSkill;

use super::{Route, Router};

pub(super) const ABOUT: &str = "Shows what a2ad does: converts money, gives back what it is given, writes slowly, asks before it proceeds";

const SKILLS: [&str; 4] = ["currency", "echo", "slow-writer", "approver"];

pub(super) fn router() -> Router {
    let route =
        |name: &&str| Some(Route::new(skill(name)?, super::builtin(name)?).with_keywords(super::words(name)));
    Router::new(SKILLS.iter().filter_map(route).collect())
}

pub(super) fn skills() -> Vec<AgentSkill> {
    SKILLS.iter().filter_map(|name| skill(name)).collect()
}

/// The skill with the agent's own name, with that agent's media types.
fn skill(name: &str) -> Option<AgentSkill> {
    let info = super::info(name)?;
    let skill = info.skills.into_iter().find(|skill| skill.id == name)?;
    Some(AgentSkill { input_modes: info.input_modes, output_modes: info.output_modes, ..skill })
}
