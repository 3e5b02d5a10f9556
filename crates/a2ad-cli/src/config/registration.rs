//! Turns configured agents into the catalog that the engine runs.

use engine::{Agent as _, AgentInfo, Catalog, DynAgent, OnCrash, RegisteredAgent, RunSettings};
use outbound::agents::{self, Route, Router};
use protocol::model::AgentSkill;

use super::{AgentConfig, Config, SkillConfig};

impl Config {
    /// All configured agents.
    pub(crate) fn catalog(&self) -> Catalog {
        let agents = self.agents.iter().map(AgentConfig::registered);
        Catalog::new(&self.server.default_agent, agents).with_unregistered_retention(self.store.retention)
    }
}

impl AgentConfig {
    /// The agent as the engine runs it.
    pub(crate) fn registered(&self) -> RegisteredAgent {
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
        let registered = RegisteredAgent::new(info, agent)
            .with_dedupe(self.dedupe)
            .with_retention(self.retention)
            .with_settings(self.settings());
        with_run_settings(registered, &self.skills)
    }
}

/// The settings of the only skill apply to all tasks of the agent, whichever of its built-in agent's skills they request.
/// With several skills each has its own. A router may choose any of them for a task without a skill, so after a crash
/// such a task is treated as the strictest of them requires.
fn with_run_settings(registered: RegisteredAgent, skills: &[SkillConfig]) -> RegisteredAgent {
    if let [skill] = skills {
        return registered.with_run_settings(skill.runs);
    }
    let on_crash =
        |skill: &SkillConfig| skill.runs.on_crash.unwrap_or_else(|| built_in(skill).1.policy().on_crash);
    let strictest = [OnCrash::Fail, OnCrash::Resume]
        .into_iter()
        .find(|one| skills.iter().any(|skill| on_crash(skill) == *one));
    let unnamed = RunSettings { on_crash: strictest, ..RunSettings::default() };
    skills.iter().fold(registered.with_run_settings(unnamed), |registered, skill| {
        registered
            .with_skill_settings(&skill.id, RunSettings { on_crash: Some(on_crash(skill)), ..skill.runs })
    })
}

/// An agent with one skill is the built-in agent itself; its main skill gets the configured id. Its other skills
/// stay on the card unchanged, because the agent selects among them itself.
fn single(skill: &SkillConfig) -> (AgentInfo, DynAgent) {
    let (info, agent) = built_in(skill);
    let present = |own: AgentSkill| if own.id == skill.builtin { skill.present(own) } else { own };
    (AgentInfo { skills: info.skills.into_iter().map(present).collect(), ..info }, agent)
}

/// An agent with several skills is a router that selects by the configured ids.
fn several(id: &str, skills: &[SkillConfig]) -> (AgentInfo, DynAgent) {
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
        routes.push(Route::new(presented.clone(), agent).with_keywords(agents::keywords(skill.builtin)));
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
    (info, DynAgent::new(Router::new(routes)))
}

impl SkillConfig {
    /// The skill as the card shows it: the built-in agent's values unless configured.
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

/// The skill with the agent's own id; if there is none, one skill that combines all.
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

fn built_in(skill: &SkillConfig) -> (AgentInfo, DynAgent) {
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
