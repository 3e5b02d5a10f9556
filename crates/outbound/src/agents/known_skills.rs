//! An agent whose skills can be removed while its tasks wait: a turn that requests a skill it no longer has fails, instead
//! of being run as another skill. A [`Router`](super::Router) does the same for the agents behind it.

use engine::{Agent, AgentResult, DynAgent, ExecutionPolicy, Outcome, Scope, Turn};
use protocol::TaskId;

use super::router::removed;

/// An agent with the skills that it has at the moment.
pub struct KnownSkills {
    agent: DynAgent,
    /// Ids.
    skills: Vec<String>,
}

impl KnownSkills {
    /// Runs the turns of these skills, and those without a skill.
    pub fn new(agent: DynAgent, skills: impl IntoIterator<Item = String>) -> Self {
        Self { agent, skills: skills.into_iter().collect() }
    }
}

impl Agent for KnownSkills {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        match turn.skill.as_ref().filter(|skill| !self.skills.contains(skill)) {
            Some(skill) => Ok(removed(&turn, skill)),
            None => self.agent.run(turn).await,
        }
    }

    fn abandoned(&self, scope: &Scope, task: &TaskId) {
        self.agent.abandoned(scope, task);
    }

    fn policy(&self) -> ExecutionPolicy {
        self.agent.policy()
    }
}
