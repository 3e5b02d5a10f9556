//! An agent whose skills can be removed while its tasks wait: a turn that requests a skill it no longer has fails, instead
//! of being run as another skill. A [`Router`](super::Router) does the same for the agents behind it.
//!
//! Checkpoints have the form of a router's, because an agent that gets a second skill is one from then on, and its tasks
//! that wait go on with it.

use engine::{Agent, AgentResult, DynAgent, ExecutionPolicy, Outcome, Scope, Turn};
use protocol::TaskId;

use super::router::{removed, unpack};

/// An agent with the skills that it has at the moment.
pub struct KnownSkills {
    agent: DynAgent,
    /// Ids; the first is that of the agent's main skill.
    skills: Vec<String>,
    /// What its checkpoints start with.
    save_prefix: Vec<u8>,
}

impl KnownSkills {
    /// Runs the turns of these skills, the main one first, and those without a skill.
    pub fn new(agent: DynAgent, skills: impl IntoIterator<Item = String>) -> Self {
        let skills: Vec<String> = skills.into_iter().collect();
        let save_prefix = skills.first().map(|main| format!("{main}\n").into_bytes()).unwrap_or_default();
        Self { agent, skills, save_prefix }
    }

    /// The turn with the agent's own part of the checkpoint. One without a skill's id is from before there were any.
    fn own(&self, turn: Turn) -> Turn {
        let own = turn.saved_bytes().map(|saved| match unpack(saved) {
            Some((skill, own)) if self.skills.contains(&skill) => own,
            _ => saved.clone(),
        });
        turn.delegate(own, &self.save_prefix)
    }
}

impl Agent for KnownSkills {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        match turn.skill.as_ref().filter(|skill| !self.skills.contains(skill)) {
            Some(skill) => Ok(removed(&turn, skill)),
            None => self.agent.run(self.own(turn)).await,
        }
    }

    fn abandoned(&self, scope: &Scope, task: &TaskId) {
        self.agent.abandoned(scope, task);
    }

    fn policy(&self) -> ExecutionPolicy {
        self.agent.policy()
    }
}
