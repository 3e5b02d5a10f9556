//! The registry of this server's agents.

use std::{collections::BTreeMap, sync::Arc};

use protocol::model::AgentSkill;

use crate::{agent::DynAgent, idempotency::Dedupe, retention::Retention};

/// An agent with its card data and its settings.
pub struct RegisteredAgent {
    info: AgentInfo,
    agent: DynAgent,
    dedupe: Dedupe,
    retention: Retention,
}

/// What an agent's card shows.
#[derive(Clone, Debug)]
pub struct AgentInfo {
    /// Id in paths and scopes.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Card description.
    pub description: String,
    /// The agent's own version, not the protocol's.
    pub version: String,
    /// Skills in card order.
    pub skills: Vec<AgentSkill>,
    /// Default input media types.
    pub input_modes: Vec<String>,
    /// Default output media types.
    pub output_modes: Vec<String>,
}

impl RegisteredAgent {
    /// With default deduplication and retention.
    pub fn new(info: AgentInfo, agent: DynAgent) -> Self {
        Self { info, agent, dedupe: Dedupe::default(), retention: Retention::default() }
    }

    /// Which messages get an idempotency key.
    #[must_use]
    pub fn with_dedupe(self, dedupe: Dedupe) -> Self {
        Self { dedupe, ..self }
    }

    /// How long this agent's tasks are kept.
    #[must_use]
    pub fn with_retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Which messages get an idempotency key.
    pub fn dedupe(&self) -> Dedupe {
        self.dedupe
    }

    /// How long this agent's tasks are kept.
    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// Card data.
    pub fn info(&self) -> &AgentInfo {
        &self.info
    }

    /// The implementation.
    pub fn agent(&self) -> &DynAgent {
        &self.agent
    }
}

/// All agents of this server. Cheap to clone.
#[derive(Clone, Default)]
pub struct Agents {
    registered: Arc<BTreeMap<String, RegisteredAgent>>,
    /// Retention for stored tasks of agents that are no longer registered.
    unregistered: Retention,
}

impl Agents {
    /// A registry of these agents; the last one wins when two have the same id.
    pub fn new(agents: impl IntoIterator<Item = RegisteredAgent>) -> Self {
        let registered =
            agents.into_iter().map(|registered| (registered.info.id.clone(), registered)).collect();
        Self { registered: Arc::new(registered), unregistered: Retention::default() }
    }

    /// Sets the retention for stored tasks of agents that are no longer registered.
    #[must_use]
    pub fn with_unregistered_retention(self, unregistered: Retention) -> Self {
        Self { unregistered, ..self }
    }

    /// Looks an agent up by id.
    pub fn get(&self, id: &str) -> Option<&RegisteredAgent> {
        self.registered.get(id)
    }

    /// All agents, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = &RegisteredAgent> {
        self.registered.values()
    }

    /// The retention of an agent, registered or not.
    pub(crate) fn retention(&self, id: &str) -> Retention {
        self.get(id).map_or(self.unregistered, RegisteredAgent::retention)
    }

    /// Every retention that applies to some task.
    pub(crate) fn retentions(&self) -> impl Iterator<Item = Retention> {
        self.iter().map(RegisteredAgent::retention).chain([self.unregistered])
    }
}
