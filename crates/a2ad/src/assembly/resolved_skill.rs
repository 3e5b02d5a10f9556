//! The skills of an agent as they are at the moment: those of the file, the tools of MCP servers and the operations of
//! OpenAPI documents.

use std::collections::{BTreeMap, HashSet};

use engine::Skill;
use outbound::{
    agents,
    skill::{BackendSkill, Interface},
};

use super::{Backends, Builtin, Provider, SkillBackend, SkillConfig, SkillSource};

/// A skill of an agent, and where it comes from.
pub(super) struct ResolvedSkill {
    pub(super) skill: Skill,
    /// Its id before it got a unique one: lists of the file may name either.
    pub(super) own_id: String,
    /// For a unique id; `None` for a skill of the file.
    provider: Option<Provider>,
    /// Its backend is outside the process.
    pub(super) is_tool: bool,
    /// It belongs to one user or organisation of a platform, so it is never public.
    pub(super) is_private: bool,
}

impl ResolvedSkill {
    fn new(skill: Skill, provider: Option<Provider>, is_tool: bool) -> Self {
        let own_id = skill.id().to_owned();
        Self { is_private: is_private(&own_id), skill, own_id, provider, is_tool }
    }

    fn rename(&mut self, id: String) {
        self.is_private |= is_private(&id);
        self.skill.card.name.clone_from(&id);
        self.skill.card.id = id;
    }
}

/// The skills that one entry of an agent's list stands for.
pub(super) fn resolve(source: &SkillSource, backends: &Backends) -> Vec<ResolvedSkill> {
    match source {
        SkillSource::Own(config) => vec![own_skill(config, backends)],
        SkillSource::Provided { by, selection } => {
            let skills = backends.provided(by).unwrap_or_default().into_iter();
            let chosen = skills.filter(|skill| selection.contains(&skill.id));
            chosen.map(|skill| ResolvedSkill::new(skill.into(), Some(by.clone()), true)).collect()
        }
    }
}

fn own_skill(config: &SkillConfig, backends: &Backends) -> ResolvedSkill {
    let tool = match &config.backend {
        SkillBackend::Builtin(builtin) => {
            return ResolvedSkill::new(builtin_skill(config, builtin), None, false);
        }
        SkillBackend::Mcp { server, tool } => backends.tool_skill(server, tool, &config.interface),
        SkillBackend::Ready { kind, backend, on_crash } => backends.recorded(
            kind,
            &config.id,
            BackendSkill::new(
                &config.id,
                format!("Runs {} with a backend of the kind {kind}", config.id),
                *on_crash,
                backend.clone(),
            ),
        ),
    };
    let tool = BackendSkill {
        id: config.id.clone(),
        description: config.description.clone().unwrap_or(tool.description),
        tags: config.tags.clone().unwrap_or(tool.tags),
        examples: config.examples.clone().unwrap_or(tool.examples),
        input_schema: config.input_schema.clone().or(tool.input_schema),
        output_schema: config.output_schema.clone().or(tool.output_schema),
        interface: own_interface(config, &tool.interface),
        ..tool
    };
    // Tags that the operator has written are keywords; those of tools and operations are categories.
    let keywords = config.tags.clone().unwrap_or_default();
    let mut skill = Skill { keywords, run: config.runs, ..tool.into() };
    if let Some(name) = &config.name {
        skill.card.name.clone_from(name);
    }
    ResolvedSkill::new(skill, None, true)
}

/// That of the skill, and that of its backend where it sets nothing. Whether a tool gets the message depends on the tool.
fn own_interface(config: &SkillConfig, of_backend: &Interface) -> Interface {
    match &config.backend {
        SkillBackend::Mcp { .. } => {
            Interface { input: of_backend.input, ..config.interface.clone().or(of_backend) }
        }
        SkillBackend::Builtin(_) | SkillBackend::Ready { .. } => config.interface.clone().or(of_backend),
    }
}

fn builtin_skill(config: &SkillConfig, builtin: &Builtin) -> Skill {
    let own = builtin.skill.clone();
    let card = config.present(own.card);
    Skill { keywords: agents::routing_keywords(&card, builtin.id()), card, run: config.runs, ..own }
}

/// Tools and operations with the same id as another skill of the agent get the name of their server or document in
/// front: `SERVER__TOOL`.
pub(super) fn with_unique_ids(mut skills: Vec<ResolvedSkill>) -> Vec<ResolvedSkill> {
    // Several entries of the agent's list can select the same tool.
    let mut selected = HashSet::new();
    skills.retain(|skill| selected.insert((skill.provider.clone(), skill.skill.card.id.clone())));
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for skill in &skills {
        *uses.entry(skill.skill.card.id.clone()).or_default() += 1;
    }
    for skill in &mut skills {
        if uses[&skill.skill.card.id] > 1
            && let Some(provider) = &skill.provider
        {
            let id = format!("{}__{}", provider.name(), skill.skill.card.id);
            skill.rename(id);
        }
    }
    let mut ids = HashSet::new();
    skills.retain(|skill| {
        let is_new = ids.insert(skill.skill.card.id.clone());
        if !is_new {
            tracing::warn!(skill = skill.skill.card.id, "a second skill with this id is not served");
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
