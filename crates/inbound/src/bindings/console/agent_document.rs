//! Agents as JSON, for operators. The command line uses it too, where it works without a server.

use engine::{AgentSwitch, RegisteredAgent, SwitchState, store::AgentTaskCounts};
use protocol::{TaskState, dialect::v03::task::state_name, json::write::Writer};

/// An agent as operators see it.
pub struct OperatedAgent<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its display name.
    pub name: &'a str,
    /// Whether calls of it are accepted.
    pub enabled: bool,
    /// The decision of an operator; `None` if the configuration decides.
    pub switch: Option<&'a AgentSwitch>,
    /// Whether it is served at `/` too.
    pub is_default: bool,
    /// How many skills it has; `None` where only a server knows.
    pub skills: Option<usize>,
    /// Its tasks by state.
    pub tasks: &'a [(TaskState, u64)],
}

impl<'a> OperatedAgent<'a> {
    /// An agent of a catalog.
    pub(super) fn registered(
        agent: &'a RegisteredAgent,
        is_default: bool,
        tasks: &'a [(TaskState, u64)],
    ) -> Self {
        Self {
            id: &agent.info().id,
            name: &agent.info().name,
            enabled: agent.settings().enabled,
            switch: agent.switch(),
            is_default,
            skills: Some(agent.info().skills.len()),
            tasks,
        }
    }
}

/// The tasks of an agent by state.
pub fn tasks_of<'a>(counts: &'a [AgentTaskCounts], tenant: &str, agent: &str) -> &'a [(TaskState, u64)] {
    let found = counts.iter().find(|counts| counts.agent.tenant == tenant && counts.agent.agent == agent);
    found.map_or(&[], |counts| &counts.states)
}

/// A list of agents as JSON.
pub fn list<'a>(agents: impl IntoIterator<Item = OperatedAgent<'a>>) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.key("agents").array(agents, |out, agent| out.object(|out| write_members(out, &agent)));
    });
    writer.finish()
}

/// A decision as JSON.
pub fn switched(switch: &AgentSwitch) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("id", &switch.agent);
        write_decision(out, switch.state == SwitchState::Enabled, Some(switch));
    });
    writer.finish()
}

fn write_members(out: &mut Writer, agent: &OperatedAgent<'_>) {
    out.text("id", agent.id);
    out.text("name", agent.name);
    write_decision(out, agent.enabled, agent.switch);
    out.key("default").boolean(agent.is_default);
    if let Some(skills) = agent.skills {
        out.key("skills").int(number(skills as u64));
    }
    let own = format!("/a2a/{}", agent.id);
    let endpoints = if agent.is_default { vec!["/", &own] } else { vec![own.as_str()] };
    out.texts("endpoints", &endpoints);
    write_states(out.key("tasks"), agent.tasks);
}

fn write_decision(out: &mut Writer, enabled: bool, switch: Option<&AgentSwitch>) {
    out.key("enabled").boolean(enabled);
    out.text("decidedBy", switch.map_or("configuration", |switch| &switch.by));
    out.maybe_text("decidedAt", switch.map(|switch| switch.at.to_string()).as_deref());
}

/// The number of tasks in each state that some task has.
pub(super) fn write_states(out: &mut Writer, states: &[(TaskState, u64)]) {
    out.object(|out| {
        for (state, count) in states {
            out.key(state_name(*state)).int(number(*count));
        }
    });
}

pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
