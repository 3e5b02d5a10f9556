//! The agents of this server, by name.

use std::{collections::BTreeMap, sync::Arc};

use protocol::model::AgentSkill;

use crate::{agent::Agent, idempotency::Dedupe, retention::Retention};

/// An agent and how it presents itself.
pub struct Hosted {
    profile: Profile,
    agent: Arc<dyn Agent>,
    dedupe: Dedupe,
    retention: Retention,
}

/// How an agent presents itself on its card.
#[derive(Clone, Debug)]
pub struct Profile {
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

impl Hosted {
    /// Presents an agent.
    pub fn new(profile: Profile, agent: Arc<dyn Agent>) -> Self {
        Self { profile, agent, dedupe: Dedupe::default(), retention: Retention::default() }
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
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What does the work.
    pub fn agent(&self) -> &Arc<dyn Agent> {
        &self.agent
    }
}

/// All agents of this server. Cheap to clone.
#[derive(Clone, Default)]
pub struct Agents {
    hosted: Arc<BTreeMap<String, Hosted>>,
    /// How long tasks of agents that are no longer here are kept.
    left_over: Retention,
}

impl Agents {
    /// These agents; of two with the same id the later one counts.
    pub fn new(agents: impl IntoIterator<Item = Hosted>) -> Self {
        let hosted = agents.into_iter().map(|hosted| (hosted.profile.id.clone(), hosted)).collect();
        Self { hosted: Arc::new(hosted), left_over: Retention::default() }
    }

    /// How long tasks of agents that are no longer among these are kept.
    #[must_use]
    pub fn with_left_over(self, left_over: Retention) -> Self {
        Self { left_over, ..self }
    }

    /// The agent of an id.
    pub fn get(&self, id: &str) -> Option<&Hosted> {
        self.hosted.get(id)
    }

    /// Every agent, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Hosted> {
        self.hosted.values()
    }

    /// How long the tasks of an agent are kept, hosted or not.
    pub(crate) fn retention(&self, id: &str) -> Retention {
        self.get(id).map_or(self.left_over, Hosted::retention)
    }

    /// Every time that counts for some task.
    pub(crate) fn retentions(&self) -> impl Iterator<Item = Retention> {
        self.iter().map(Hosted::retention).chain([self.left_over])
    }
}
