//! The agents that `builtin = "…"` names: those that come with a2ad, and those that another program adds to them.
//!
//! Which agents a program has is decided when it is built, so they are set once for the process and not passed through every
//! command that reads a configuration.

use std::sync::OnceLock;

use engine::{AgentInfo, DynAgent, RegisteredAgent};
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

/// The card data of a built-in agent, and the agent.
pub(crate) fn find(name: &str) -> Option<(AgentInfo, DynAgent)> {
    let found = added().iter().find(|agent| agent.info().id == name);
    let found = found.map(|agent| (agent.info().clone(), agent.agent().clone()));
    found.or_else(|| agents::info(name).zip(agents::builtin(name)))
}

fn added_names() -> impl Iterator<Item = &'static str> {
    added().iter().map(|agent| agent.info().id.as_str())
}

fn added() -> &'static [RegisteredAgent] {
    ADDED.get().map(Vec::as_slice).unwrap_or_default()
}
