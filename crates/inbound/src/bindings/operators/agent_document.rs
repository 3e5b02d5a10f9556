//! Agents as JSON, for operators.

use std::collections::BTreeSet;

use engine::{AgentSwitch, RegisteredAgent, SwitchState, store::AgentTaskCounts};
use protocol::{TaskState, dialect::v03::task::state_name, json::write::Writer};

/// An agent as operators see it.
pub(super) struct OperatorAgent<'a> {
    /// Its id.
    pub(super) id: &'a str,
    /// Its display name.
    pub(super) name: &'a str,
    /// Whether calls of it are accepted.
    pub(super) enabled: bool,
    /// The decision of an operator; `None` if the configuration decides.
    pub(super) switch: Option<&'a AgentSwitch>,
    /// Whether it is served at `/` too.
    pub(super) is_default: bool,
    /// How many skills it has; `None` where only a server knows.
    pub(super) skills: Option<usize>,
    /// Its tasks by state.
    pub(super) tasks: &'a [(TaskState, u64)],
}

impl<'a> OperatorAgent<'a> {
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
            skills: Some(agent.skills().len()),
            tasks,
        }
    }
}

/// The tasks of an agent by state.
pub(super) fn tasks_of<'a>(
    counts: &'a [AgentTaskCounts],
    tenant: &str,
    agent: &str,
) -> &'a [(TaskState, u64)] {
    let found = counts.iter().find(|counts| counts.agent.tenant == tenant && counts.agent.agent == agent);
    found.map_or(&[], |counts| &counts.states)
}

/// The agents that a store knows as JSON: those that have tasks or were switched.
pub(super) fn stored(switches: &[AgentSwitch], counts: &[AgentTaskCounts], tenant: &str) -> Vec<u8> {
    let with_tasks = counts.iter().map(|counts| (counts.agent.tenant.as_str(), counts.agent.agent.as_str()));
    let switched = switches.iter().map(|switch| (switch.tenant.as_str(), switch.agent.as_str()));
    let ids: BTreeSet<&str> =
        with_tasks.chain(switched).filter(|(of, _)| *of == tenant).map(|(_, id)| id).collect();
    list(ids.into_iter().map(|id| {
        let switch = switches.iter().find(|switch| switch.tenant == tenant && switch.agent == id);
        OperatorAgent {
            id,
            name: id,
            enabled: switch.is_none_or(|switch| switch.state == SwitchState::Enabled),
            switch,
            is_default: false,
            skills: None,
            tasks: tasks_of(counts, tenant, id),
        }
    }))
}

/// A list of agents as JSON.
pub(super) fn list<'a>(agents: impl IntoIterator<Item = OperatorAgent<'a>>) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.key("agents").array(agents, |out, agent| out.object(|out| write_members(out, &agent)));
    });
    writer.finish()
}

/// A decision as JSON.
pub(super) fn switched(switch: &AgentSwitch) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("id", &switch.agent);
        write_decision(out, switch.state == SwitchState::Enabled, Some(switch));
    });
    writer.finish()
}

fn write_members(out: &mut Writer, agent: &OperatorAgent<'_>) {
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
