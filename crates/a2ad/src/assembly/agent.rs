//! An agent that consists of skills: makes of its list what the engine runs, with the tools that MCP servers and OpenAPI
//! documents have at the moment.

use engine::{
    AgentInfo, AgentSettings, AuthMethods, Dedupe, EndUser, HiddenSkills, RegisteredAgent, Retention,
    RunSettings, SkillSet, SkillVisibility,
};
use outbound::skill::schemas_extension;
use protocol::model::AgentExtension;

use super::{
    Backends, Builtin, Provider, SkillBackend, SkillConfig, SkillSource,
    resolved_skill::{ResolvedSkill, is_private, resolve, with_unique_ids},
};

/// The version on the card of an agent that sets none.
const VERSION: &str = "0.1.0";
const JSON: &str = "application/json";

/// An agent that consists of skills.
#[derive(Clone, Debug)]
pub struct SkillAgent {
    /// Id in paths.
    pub id: String,
    /// `None`: the id.
    pub name: Option<String>,
    /// `None`: says what skills there are.
    pub description: Option<String>,
    /// The agent's own version; `None`: 0.1.0.
    pub version: Option<String>,
    /// What it consists of.
    pub skills: Vec<SkillSource>,
    /// Ids of skills that only the extended card shows.
    pub extended_skills: Vec<String>,
    /// Ids of skills that every caller may use; empty: all.
    pub skills_allow: Vec<String>,
    /// How it is served.
    pub settings: AgentSettings,
    /// Which messages are deduplicated.
    pub dedupe: Dedupe,
    /// How long finished tasks are kept.
    pub retention: Retention,
    /// How runs of skills are limited and recovered that set nothing themselves.
    pub runs: RunSettings,
}

/// The tools that skills of these agents refer to and that their servers do not have, one text each. A server that has not
/// listed its tools yet is not in it.
#[cfg(feature = "mcp")]
pub fn missing_tools<'a>(agents: impl Iterator<Item = &'a SkillAgent>, backends: &Backends) -> Vec<String> {
    let agents: Vec<&SkillAgent> = agents.collect();
    let servers = agents.iter().flat_map(|agent| &agent.skills).filter_map(|source| match source {
        SkillSource::Provided { by: Provider::Mcp(server), .. } => Some(server),
        SkillSource::Provided { .. } | SkillSource::Own(_) => None,
    });
    let unmatched = servers.flat_map(|server| {
        let patterns = backends.unmatched_patterns(server).into_iter();
        patterns.map(move |pattern| {
            format!("mcp.{server}.tools: {pattern:?} matches no tool of the MCP server {server}")
        })
    });
    let mut missing: Vec<String> = agents
        .iter()
        .flat_map(|agent| &agent.skills)
        .filter_map(|source| {
            let (server, tool) = source.named_tool()?;
            let tools = backends.tool_names(server)?;
            let names = || tools.iter().map(String::as_str);
            (!names().any(|name| name == tool)).then(|| {
                format!("the MCP server {server} has no tool {tool:?}; {}", protocol::hint(tool, names()))
            })
        })
        .collect();
    missing.extend(unmatched);
    missing.sort();
    missing.dedup();
    missing
}

/// The skills of these sources, for work that calls them by their ids.
pub fn hidden_skills(sources: &[SkillSource], backends: &Backends) -> HiddenSkills {
    let found = sources.iter().flat_map(|source| resolve(source, backends)).collect();
    let skills = with_unique_ids(found).into_iter().map(|resolved| resolved.skill);
    HiddenSkills::new(skills, pending(sources, backends))
}

/// The MCP servers and documents whose skills are not known yet.
fn pending(sources: &[SkillSource], backends: &Backends) -> Vec<String> {
    let unknown = |source: &SkillSource| match source {
        SkillSource::Provided { by, .. } if !backends.is_known(by) => Some(by.name().to_owned()),
        SkillSource::Provided { .. } | SkillSource::Own(_) => None,
    };
    sources.iter().filter_map(unknown).collect()
}

impl SkillAgent {
    /// The agent as the engine runs it.
    pub fn registered(&self, backends: &Backends) -> RegisteredAgent {
        if let [SkillSource::Own(skill)] = self.skills.as_slice()
            && let SkillBackend::Builtin(builtin) = &skill.backend
            && !(self.extended_skills.contains(&skill.id) || is_private(&skill.id))
        {
            return self.single(skill, builtin);
        }
        let resolved = self.resolve(backends);
        let mut settings = self.settings.clone();
        settings.extensions.extend(schemas(&resolved));
        let info = self.info(&resolved);
        let skills = SkillSet::separate(resolved.into_iter().map(|resolved| resolved.skill));
        RegisteredAgent::new(info, skills.with_pending(pending(&self.skills, backends)))
            .with_dedupe(self.dedupe)
            .with_retention(self.retention)
            .with_settings(settings)
            .with_run_settings(self.runs)
    }

    /// The same for calls of the person who starts this program: nobody else can reach the agent, so no credential is
    /// required.
    pub fn registered_for_owner(&self, backends: &Backends) -> RegisteredAgent {
        let registered = self.registered(backends);
        let settings = AgentSettings {
            auth: AuthMethods::ANONYMOUS,
            end_user: EndUser::Off,
            security: Vec::new(),
            ..registered.settings().clone()
        };
        registered.with_settings(settings)
    }

    /// What the card shows. Everything but the list of skills is on the public card as it is here, so it does not
    /// depend on skills that only the extended card shows.
    fn info(&self, resolved: &[ResolvedSkill]) -> AgentInfo {
        let public: Vec<_> = public(resolved).collect();
        let (mut input_modes, mut output_modes) = (Vec::new(), Vec::new());
        for ResolvedSkill { skill, .. } in &public {
            merge(&mut input_modes, &skill.card.input_modes);
            merge(&mut output_modes, &skill.card.output_modes);
        }
        if public.is_empty() {
            // An agent of tools that are not known yet.
            input_modes.push(JSON.into());
            output_modes.push(JSON.into());
        }
        AgentInfo {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or_else(|| self.id.clone()),
            description: self.description.clone().unwrap_or_else(|| describe(&public)),
            version: self.version.clone().unwrap_or_else(|| VERSION.into()),
            input_modes,
            output_modes,
        }
    }

    /// An agent with one built-in skill is the built-in agent itself; its main skill gets the configured id. Its other
    /// skills stay on the card unchanged, because the agent selects among them itself.
    fn single(&self, skill: &SkillConfig, builtin: &Builtin) -> RegisteredAgent {
        let own = builtin.agent.info().clone();
        let info = AgentInfo {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or(own.name),
            description: self.description.clone().unwrap_or(own.description),
            ..own
        };
        RegisteredAgent::new(info, builtin.agent.skills().clone())
            .with_skill(builtin.id(), |main| main.card = skill.present(main.card.clone()))
            .with_dedupe(self.dedupe)
            .with_retention(self.retention)
            .with_settings(self.settings.clone())
            .with_run_settings(skill.runs)
    }

    /// The skills of the agent, with unique ids, without those that nobody may use.
    fn resolve(&self, backends: &Backends) -> Vec<ResolvedSkill> {
        let found = self.skills.iter().flat_map(|source| resolve(source, backends)).collect();
        let mut unique = with_unique_ids(found);
        for resolved in &mut unique {
            if self.is_extended(resolved) {
                resolved.skill.visibility = SkillVisibility::Extended;
            }
        }
        unique.retain(|resolved| !resolved.skill.is_public() || self.allows_everyone(resolved));
        unique
    }

    /// Whether only the extended card shows a skill. A tool stays on that card when another server has one of the same
    /// name and both get other ids.
    fn is_extended(&self, resolved: &ResolvedSkill) -> bool {
        let ResolvedSkill { skill, own_id, .. } = resolved;
        self.extended_skills.iter().any(|listed| listed == skill.id() || listed == own_id)
    }

    fn allows_everyone(&self, resolved: &ResolvedSkill) -> bool {
        let is_listed = |allowed: &String| allowed == resolved.skill.id();
        let allowed = self.skills_allow.is_empty() || self.skills_allow.iter().any(is_listed);
        allowed && !resolved.is_private
    }
}

/// The schemas of the skills that the public card shows.
fn schemas(resolved: &[ResolvedSkill]) -> Option<AgentExtension> {
    schemas_extension(public(resolved).map(|resolved| &resolved.skill))
}

fn public(resolved: &[ResolvedSkill]) -> impl Iterator<Item = &ResolvedSkill> {
    resolved.iter().filter(|resolved| resolved.skill.is_public())
}

fn describe(skills: &[&ResolvedSkill]) -> String {
    let tools = skills.iter().filter(|resolved| resolved.is_tool).count();
    if tools > 0 || skills.is_empty() {
        return format!("AI agent powered by a2ad with {tools} tool(s)");
    }
    let ids: Vec<&str> = skills.iter().map(|resolved| resolved.skill.id()).collect();
    format!("Has the skills {}", ids.join(", "))
}

fn merge(modes: &mut Vec<String>, more: &[String]) {
    for mode in more {
        if !modes.contains(mode) {
            modes.push(mode.clone());
        }
    }
}
