//! The agents of a builder: Rust agents, and agents that consist of skills with backends.

#[cfg(feature = "backends")]
use std::sync::Arc;

#[cfg(feature = "backends")]
use engine::HiddenSkills;
use engine::{Agent, AgentSettings, AuthMethods, DynAgent, RegisteredAgent};

#[cfg(feature = "backends")]
use super::backends::Skills;
use super::{Builder, Card, ServeError};
#[cfg(feature = "backends")]
use crate::assembly::{Backends, SkillAgent};

/// What does the work of an agent: a Rust [`Agent`], or the skills that `backend::skills` lists.
pub struct AgentWork(pub(super) Work);

pub(super) enum Work {
    Agent(DynAgent),
    #[cfg(feature = "backends")]
    Skills(Vec<String>),
}

/// An agent of a builder.
pub(super) struct BuilderAgent {
    pub(super) card: Card,
    pub(super) work: Work,
}

/// An agent of a server.
pub(super) enum ServedAgent {
    Registered(Box<RegisteredAgent>),
    /// Its skills may change.
    #[cfg(feature = "backends")]
    Skills(Box<SkillAgent>),
}

impl<A: Agent> From<A> for AgentWork {
    fn from(agent: A) -> Self {
        Self(Work::Agent(DynAgent::new(agent)))
    }
}

#[cfg(feature = "backends")]
impl From<Skills> for AgentWork {
    fn from(Skills(selectors): Skills) -> Self {
        Self(Work::Skills(selectors))
    }
}

impl ServedAgent {
    /// The agent as the engine runs it, with the skills that are known at the moment.
    #[cfg(feature = "backends")]
    pub(super) fn registered(&self, backends: &Backends, hidden: &Arc<HiddenSkills>) -> RegisteredAgent {
        match self {
            Self::Registered(agent) => RegisteredAgent::clone(agent).with_hidden_skills(Arc::clone(hidden)),
            Self::Skills(agent) => agent.registered(backends),
        }
    }

    #[cfg(not(feature = "backends"))]
    pub(super) fn registered(&self) -> RegisteredAgent {
        let Self::Registered(agent) = self;
        RegisteredAgent::clone(agent)
    }
}

impl Builder {
    /// The agents with their profiles and the credentials that they accept.
    pub(super) fn served_agents(&self) -> Result<Vec<ServedAgent>, ServeError> {
        self.agents.iter().map(|agent| self.served_agent(agent)).collect()
    }

    fn served_agent(&self, BuilderAgent { card, work }: &BuilderAgent) -> Result<ServedAgent, ServeError> {
        let mut card = card.clone();
        card.settings = self.settings(&card);
        match work {
            Work::Agent(work) => Ok(ServedAgent::Registered(Box::new(card.registered(work)))),
            #[cfg(feature = "backends")]
            Work::Skills(selectors) => {
                Ok(ServedAgent::Skills(Box::new(self.backends.skill_agent(card, selectors)?)))
            }
        }
    }

    fn settings(&self, card: &Card) -> AgentSettings {
        let listed = card.auth.clone();
        let methods = listed.or_else(|| Some(self.auth.methods()).filter(|own| !own.is_empty()));
        AgentSettings {
            profile: self.profiles.get(&card.info.id).unwrap_or(&card.settings.profile).clone(),
            auth: methods.as_ref().map_or(AuthMethods::ANONYMOUS, |own| own.iter().copied().collect()),
            security: inbound::security_schemes(methods.into_iter().flatten(), self.auth.issuers()),
            ..card.settings.clone()
        }
    }
}
