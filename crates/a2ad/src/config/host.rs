//! Configured agents become agents that run.

use std::sync::Arc;

use engine::{Agent, AgentInfo, RegisteredAgent};
use outbound::agents::{self, Route, Router};
use protocol::model::AgentSkill;

use super::{AgentConfig, SkillConfig};

impl AgentConfig {
    /// The agent as the engine runs it.
    pub(crate) fn host(&self) -> RegisteredAgent {
        let (info, agent) = match self.skills.as_slice() {
            [skill] => single(skill),
            skills => several(&self.id, skills),
        };
        let info = AgentInfo {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or(info.name),
            description: self.description.clone().unwrap_or(info.description),
            ..info
        };
        RegisteredAgent::new(info, agent).with_dedupe(self.dedupe).with_retention(self.retention)
    }
}

/// One skill is the built-in agent itself, whose main skill has the configured id. What other skills it has stand on
/// the card as they are: it chooses among them itself.
fn single(skill: &SkillConfig) -> (AgentInfo, Arc<dyn Agent>) {
    let (info, agent) = built_in(skill);
    let present = |own: AgentSkill| if own.id == skill.builtin { skill.present(own) } else { own };
    (AgentInfo { skills: info.skills.into_iter().map(present).collect(), ..info }, agent)
}

/// Several skills are behind a router, which chooses by their configured ids.
fn several(id: &str, skills: &[SkillConfig]) -> (AgentInfo, Arc<dyn Agent>) {
    let (mut on_card, mut routes) = (Vec::new(), Vec::new());
    let (mut input_modes, mut output_modes) = (Vec::new(), Vec::new());
    for skill in skills {
        let (info, agent) = built_in(skill);
        let presented = AgentSkill {
            input_modes: info.input_modes.clone(),
            output_modes: info.output_modes.clone(),
            ..skill.present(main_skill(&info))
        };
        merge(&mut input_modes, info.input_modes);
        merge(&mut output_modes, info.output_modes);
        routes.push(Route::new(presented.clone(), agent).with_words(agents::words(skill.builtin)));
        on_card.push(presented);
    }
    let ids: Vec<&str> = skills.iter().map(|skill| skill.id.as_str()).collect();
    let info = AgentInfo {
        id: id.into(),
        name: id.into(),
        description: format!("Has the skills {}", ids.join(", ")),
        version: env!("CARGO_PKG_VERSION").into(),
        skills: on_card,
        input_modes,
        output_modes,
    };
    (info, Arc::new(Router::new(routes)))
}

impl SkillConfig {
    /// The skill as it stands on the card: as the agent behind it has it, but for what is configured.
    fn present(&self, own: AgentSkill) -> AgentSkill {
        AgentSkill {
            id: self.id.clone(),
            name: if self.id == own.id { own.name } else { self.id.clone() },
            description: self.description.clone().unwrap_or(own.description),
            tags: self.tags.clone().unwrap_or(own.tags),
            examples: self.examples.clone().unwrap_or(own.examples),
            ..own
        }
    }
}

/// The skill an agent is named after; for one that has none, all of them as one.
fn main_skill(info: &AgentInfo) -> AgentSkill {
    let named = info.skills.iter().find(|skill| skill.id == info.id).cloned();
    named.unwrap_or_else(|| AgentSkill {
        id: info.id.clone(),
        name: info.name.clone(),
        description: info.description.clone(),
        tags: info.skills.iter().flat_map(|skill| skill.tags.clone()).collect(),
        examples: info.skills.iter().flat_map(|skill| skill.examples.clone()).collect(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    })
}

fn built_in(skill: &SkillConfig) -> (AgentInfo, Arc<dyn Agent>) {
    let found = agents::info(skill.builtin).zip(agents::builtin(skill.builtin));
    found.expect("the name was read from the list of built-in agents")
}

fn merge(modes: &mut Vec<String>, more: Vec<String>) {
    for mode in more {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
}
