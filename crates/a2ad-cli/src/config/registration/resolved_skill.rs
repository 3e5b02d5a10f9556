//! The skills of an agent as they are at the moment: those of the file, the tools of MCP servers and the operations of
//! OpenAPI documents.

use std::collections::{BTreeMap, HashSet};

use engine::{Agent as _, AgentInfo, DynAgent, RunSettings, SkillSchemas};
use outbound::{
    agents::{self, Route},
    schema::Schema,
    skill::{Skill, SkillAgent},
};
use protocol::model::AgentSkill;

use super::super::{BackendConfig, Selection, SkillConfig, SkillSource};
use crate::{backends::Backends, builtins};

/// A skill of an agent, ready to run.
pub(super) struct ResolvedSkill {
    /// Its id before it got a unique one: lists of the file may name either.
    pub(super) own_id: String,
    pub(super) on_card: AgentSkill,
    agent: DynAgent,
    /// Where it comes from, for a unique id; `None` for a skill of the file.
    origin: Option<Origin>,
    /// Routing keywords.
    keywords: Vec<String>,
    runs: RunSettings,
    /// Set for skills with a backend outside the process.
    pub(super) tool: Option<Skill>,
    /// It belongs to one user or organisation of a platform, so it is never public.
    pub(super) is_private: bool,
}

/// An MCP server or an OpenAPI document.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Origin {
    Mcp(String),
    OpenApi(String),
}

impl Origin {
    fn name(&self) -> &str {
        match self {
            Self::Mcp(name) | Self::OpenApi(name) => name,
        }
    }
}

impl ResolvedSkill {
    fn of_tool(skill: Skill, origin: Option<Origin>, runs: RunSettings) -> Self {
        Self {
            own_id: skill.id.clone(),
            is_private: is_private(&skill.id),
            on_card: skill.on_card(),
            agent: DynAgent::new(SkillAgent::new(skill.clone())),
            origin,
            keywords: Vec::new(),
            runs,
            tool: Some(skill),
        }
    }

    fn of_builtin(config: &SkillConfig, name: &'static str) -> Self {
        let (info, agent) = built_in(name);
        let on_card = AgentSkill {
            input_modes: info.input_modes.clone(),
            output_modes: info.output_modes.clone(),
            ..config.present(main_skill(&info))
        };
        let keywords = agents::routing_keywords(&on_card, name);
        Self {
            own_id: config.id.clone(),
            on_card,
            agent,
            origin: None,
            keywords,
            runs: config.runs,
            tool: None,
            is_private: is_private(&config.id),
        }
    }

    fn rename(&mut self, id: String) {
        if let Some(tool) = &mut self.tool {
            tool.id.clone_from(&id);
            self.agent = DynAgent::new(SkillAgent::new(tool.clone()));
        }
        self.is_private |= is_private(&id);
        self.on_card.name.clone_from(&id);
        self.on_card.id = id;
    }

    /// What applies to its tasks; `on_crash` is always set, because a router may run any of its skills.
    pub(super) fn run_settings(&self) -> RunSettings {
        let on_crash = self.runs.on_crash.unwrap_or_else(|| self.agent.policy().on_crash);
        RunSettings { on_crash: Some(on_crash), ..self.runs }
    }

    /// The schemas of its tool; none for a built-in agent.
    pub(super) fn schemas(&self) -> SkillSchemas {
        let text = |schema: &Option<Schema>| schema.as_ref().map(|schema| schema.text().clone());
        self.tool.as_ref().map_or_else(SkillSchemas::default, |tool| SkillSchemas {
            input: text(&tool.input_schema),
            output: text(&tool.output_schema),
        })
    }

    pub(super) fn into_route(self) -> Route {
        let route = Route::new(self.on_card, self.agent).with_keywords(self.keywords);
        match self.tool.and_then(|tool| tool.input_schema) {
            Some(schema) => route.with_input_schema(schema),
            None => route,
        }
    }
}

/// The skills that one entry of an agent's list stands for.
pub(super) fn resolve(source: &SkillSource, backends: &Backends) -> Vec<ResolvedSkill> {
    match source {
        SkillSource::Own(config) => vec![own_skill(config, backends)],
        SkillSource::Mcp { server, tool } => {
            selected(backends.tool_skills(server), &Origin::Mcp(server.clone()), tool)
        }
        SkillSource::OpenApi { document, operation } => {
            selected(backends.operations(document), &Origin::OpenApi(document.clone()), operation)
        }
    }
}

fn selected(skills: Vec<Skill>, origin: &Origin, selection: &Selection) -> Vec<ResolvedSkill> {
    let chosen = skills.into_iter().filter(|skill| selection.contains(&skill.id));
    chosen.map(|skill| ResolvedSkill::of_tool(skill, Some(origin.clone()), RunSettings::default())).collect()
}

fn own_skill(config: &SkillConfig, backends: &Backends) -> ResolvedSkill {
    let skill = match &config.backend {
        BackendConfig::Builtin(name) => return ResolvedSkill::of_builtin(config, name),
        BackendConfig::Mcp { server, tool } => backends.tool_skill(server, tool),
        BackendConfig::Ready { kind, backend, on_crash } => backends.recorded(
            kind,
            &config.id,
            Skill {
                id: config.id.clone(),
                description: format!("Runs {} with a backend of the kind {kind}", config.id),
                tags: Vec::new(),
                examples: Vec::new(),
                input_schema: None,
                output_schema: None,
                on_crash: *on_crash,
                backend: backend.clone(),
            },
        ),
    };
    let skill = Skill {
        id: config.id.clone(),
        description: config.description.clone().unwrap_or(skill.description),
        tags: config.tags.clone().unwrap_or(skill.tags),
        examples: config.examples.clone().unwrap_or(skill.examples),
        input_schema: config.input_schema.clone().or(skill.input_schema),
        output_schema: config.output_schema.clone().or(skill.output_schema),
        ..skill
    };
    // Tags that the operator has written are keywords; those of tools and operations are categories.
    let keywords = config.tags.clone().unwrap_or_default();
    ResolvedSkill { keywords, ..ResolvedSkill::of_tool(skill, None, config.runs) }
}

/// Tools and operations with the same id as another skill of the agent get the name of their server or document in
/// front: `SERVER__TOOL`.
pub(super) fn with_unique_ids(mut skills: Vec<ResolvedSkill>) -> Vec<ResolvedSkill> {
    // Several entries of the agent's list can select the same tool.
    let mut selected = HashSet::new();
    skills.retain(|skill| selected.insert((skill.origin.clone(), skill.on_card.id.clone())));
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for skill in &skills {
        *uses.entry(skill.on_card.id.clone()).or_default() += 1;
    }
    for skill in &mut skills {
        if uses[&skill.on_card.id] > 1
            && let Some(origin) = &skill.origin
        {
            let id = format!("{}__{}", origin.name(), skill.on_card.id);
            skill.rename(id);
        }
    }
    let mut ids = HashSet::new();
    skills.retain(|skill| {
        let is_new = ids.insert(skill.on_card.id.clone());
        if !is_new {
            tracing::warn!(skill = skill.on_card.id, "a second skill with this id is not served");
        }
        is_new
    });
    skills
}

/// Whether a skill belongs to one user or organisation of a platform: `mcp__user_<hash>_…`, `mcp__org_<id>_…`.
pub(super) fn is_private(skill: &str) -> bool {
    let rest = ["mcp__user_", "mcp__org_"].into_iter().find_map(|prefix| skill.strip_prefix(prefix));
    rest.and_then(|rest| rest.split_once('_')).is_some_and(|(owner, _)| !owner.is_empty())
}

impl SkillConfig {
    /// The skill as the card shows it: the built-in agent's values unless configured.
    pub(super) fn present(&self, own: AgentSkill) -> AgentSkill {
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

pub(super) fn built_in(name: &str) -> (AgentInfo, DynAgent) {
    builtins::find(name).expect("the name was read from the list of built-in agents")
}
