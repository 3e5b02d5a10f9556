//! The agents of this server, by name.

use std::{collections::BTreeMap, sync::Arc};

use protocol::model::AgentSkill;

use crate::{agent::Agent, idempotency::Dedupe, retention::Retention};

/// An agent and how it presents itself.
pub struct RegisteredAgent {
    info: AgentInfo,
    agent: Arc<dyn Agent>,
    dedupe: Dedupe,
    retention: Retention,
}

/// How an agent presents itself on its card.
#[derive(Clone, Debug)]
pub struct AgentInfo {
    /// Its name in paths and scopes.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The version of the agent itself.
    pub version: String,
    /// What it can do.
    pub skills: Vec<AgentSkill>,
    /// Media types it takes.
    pub input_modes: Vec<String>,
    /// Media types it gives.
    pub output_modes: Vec<String>,
}

impl RegisteredAgent {
    /// Presents an agent.
    pub fn new(info: AgentInfo, agent: Arc<dyn Agent>) -> Self {
        Self { info, agent, dedupe: Dedupe::default(), retention: Retention::default() }
    }

    /// Which of its messages have a key.
    #[must_use]
    pub fn with_dedupe(self, dedupe: Dedupe) -> Self {
        Self { dedupe, ..self }
    }

    /// How long its tasks are kept.
    #[must_use]
    pub fn with_retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Which of its messages have a key.
    pub fn dedupe(&self) -> Dedupe {
        self.dedupe
    }

    /// How long its tasks are kept.
    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// How it presents itself.
    pub fn info(&self) -> &AgentInfo {
        &self.info
    }

    /// What does the work.
    pub fn agent(&self) -> &Arc<dyn Agent> {
        &self.agent
    }
}

/// All agents of this server. Cheap to clone.
#[derive(Clone, Default)]
pub struct Agents {
    registered: Arc<BTreeMap<String, RegisteredAgent>>,
    /// How long tasks of agents that are no longer here are kept.
    left_over: Retention,
}

impl Agents {
    /// These agents; of two with the same id the later one counts.
    pub fn new(agents: impl IntoIterator<Item = RegisteredAgent>) -> Self {
        let registered =
            agents.into_iter().map(|registered| (registered.info.id.clone(), registered)).collect();
        Self { registered: Arc::new(registered), left_over: Retention::default() }
    }

    /// How long tasks of agents that are no longer among these are kept.
    #[must_use]
    pub fn with_left_over(self, left_over: Retention) -> Self {
        Self { left_over, ..self }
    }

    /// The agent of an id.
    pub fn get(&self, id: &str) -> Option<&RegisteredAgent> {
        self.registered.get(id)
    }

    /// Every agent, by id.
    pub fn iter(&self) -> impl Iterator<Item = &RegisteredAgent> {
        self.registered.values()
    }

    /// How long the tasks of an agent are kept, hosted or not.
    pub(crate) fn retention(&self, id: &str) -> Retention {
        self.get(id).map_or(self.left_over, RegisteredAgent::retention)
    }

    /// Every time that counts for some task.
    pub(crate) fn retentions(&self) -> impl Iterator<Item = Retention> {
        self.iter().map(RegisteredAgent::retention).chain([self.left_over])
    }
}
