//! The default agent when there is no configuration: a router to the other built-in agents.

use protocol::model::AgentSkill;

use super::{Builtin, CATALOGUE, Demo, Route, Router};

pub(super) const ABOUT: &str = "Shows what a2ad does: converts money, gives back what it is given, writes slowly, asks before it proceeds";

pub(super) fn router() -> Router {
    let route = |row: &Builtin| {
        let skill = main_skill(row)?;
        let keywords = super::routing_keywords(&skill, row.name);
        Some(Route::new(skill, (row.create)()).with_keywords(keywords))
    };
    Router::new(rows().filter_map(route).collect())
}

pub(super) fn skills() -> Vec<AgentSkill> {
    rows().filter_map(main_skill).collect()
}

/// The agents that are skills of this one.
fn rows() -> impl Iterator<Item = &'static Builtin> {
    CATALOGUE.iter().filter(|row| match row.demo {
        Demo::Absent | Demo::Served => false,
        Demo::Skill => true,
    })
}

/// The skill with the agent's own name, with that agent's media types.
fn main_skill(row: &Builtin) -> Option<AgentSkill> {
    let info = row.info();
    let skill = info.skills.into_iter().find(|skill| skill.id == row.name)?;
    Some(AgentSkill { input_modes: info.input_modes, output_modes: info.output_modes, ..skill })
}
