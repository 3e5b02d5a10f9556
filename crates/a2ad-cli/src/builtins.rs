//! The agents that `builtin = "…"` names: those that come with a2ad, and those that another program adds to them.
//!
//! Which agents a program has is decided when it is built, so they are set once for the process and not passed through every
//! command that reads a configuration.

use std::sync::{Arc, OnceLock};

use a2ad::internal::assembly::Builtin;
use engine::{RegisteredAgent, Skill};
use outbound::agents;

static ADDED: OnceLock<Vec<RegisteredAgent>> = OnceLock::new();

/// Adds agents before the first one is looked up. Each is served under its name where the demo is served.
pub(crate) fn add(agents: impl IntoIterator<Item = RegisteredAgent>) {
    ADDED.get_or_init(|| agents.into_iter().collect());
}

/// The names of all built-in agents, sorted.
pub(crate) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = agents::names().into_iter().chain(added_names()).collect();
    names.sort_unstable();
    names
}

/// The names of the agents that run without a configuration; the first is the default agent, served at `/`.
pub(crate) fn demo_names() -> Vec<&'static str> {
    agents::demo_names().into_iter().chain(added_names()).collect()
}

/// A built-in agent.
pub(crate) fn find(name: &str) -> Option<Arc<Builtin>> {
    let agent = find_added(name).cloned().or_else(|| agents::builtin(name))?;
    Some(Arc::new(Builtin { agent, skill: main_skill(name)? }))
}

/// A built-in agent as one skill of another agent. Those that are added have a skill with their name.
fn main_skill(name: &str) -> Option<Skill> {
    let Some(agent) = find_added(name) else { return agents::main_skill(name) };
    let mut skill = Skill::clone(agent.skills().find(name)?);
    skill.card.input_modes.clone_from(&agent.info().input_modes);
    skill.card.output_modes.clone_from(&agent.info().output_modes);
    Some(skill)
}

fn find_added(name: &str) -> Option<&'static RegisteredAgent> {
    added().iter().find(|agent| agent.info().id == name)
}

fn added_names() -> impl Iterator<Item = &'static str> {
    added().iter().map(|agent| agent.info().id.as_str())
}

fn added() -> &'static [RegisteredAgent] {
    ADDED.get().map(Vec::as_slice).unwrap_or_default()
}
