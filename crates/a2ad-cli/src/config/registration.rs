//! Turns configured agents into the catalog that the engine runs, with the tools that MCP servers and OpenAPI documents
//! have at the moment.

mod resolved_skill;

use engine::{
    AgentInfo, AgentSettings, AuthMethods, Catalog, EndUser, RegisteredAgent, SkillSet, SkillVisibility,
};
use outbound::skill::schemas_extension;
use protocol::model::AgentExtension;

use super::{AgentConfig, BackendConfig, Config, SkillConfig, SkillSource};
use crate::{backends::Backends, builtins, nearest::hint};
use resolved_skill::{ResolvedSkill, is_private, resolve, with_unique_ids};

/// The version on the card of an agent whose skills are configured.
const VERSION: &str = "0.1.0";
const JSON: &str = "application/json";

impl Config {
    /// All configured agents.
    pub(crate) fn catalog(&self, backends: &Backends) -> Catalog {
        let agents = self.agents.iter().map(|agent| agent.registered(backends));
        Catalog::new(&self.server.default_agent, agents).with_unregistered_retention(self.store.retention)
    }

    /// The same for calls of the person who starts this program: nobody else can reach the agents, so no credential is
    /// required.
    pub(crate) fn local_catalog(&self, backends: &Backends) -> Catalog {
        let open = |registered: RegisteredAgent| {
            let settings = AgentSettings {
                auth: AuthMethods::ANONYMOUS,
                end_user: EndUser::Off,
                security: Vec::new(),
                ..registered.settings().clone()
            };
            registered.with_settings(settings)
        };
        let agents = self.agents.iter().map(|agent| open(agent.registered(backends)));
        Catalog::new(&self.server.default_agent, agents).with_unregistered_retention(self.store.retention)
    }

    /// The tools that skills refer to and that their servers do not have, one text each. A server that has not listed
    /// its tools yet is not in it.
    pub(crate) fn missing_tools(&self, backends: &Backends) -> Vec<String> {
        let mut missing: Vec<String> = self
            .agents
            .iter()
            .flat_map(|agent| &agent.skills)
            .filter_map(|source| {
                let (server, tool) = source.named_tool()?;
                let tools = backends.tools(server)?;
                let names = || tools.iter().map(|tool| tool.name.as_str());
                let hint = || hint(tool, names());
                (!names().any(|name| name == tool))
                    .then(|| format!("the MCP server {server} has no tool {tool:?}; {}", hint()))
            })
            .collect();
        missing.sort();
        missing.dedup();
        missing
    }
}

impl AgentConfig {
    /// The agent as the engine runs it.
    pub(crate) fn registered(&self, backends: &Backends) -> RegisteredAgent {
        if let [SkillSource::Own(skill)] = self.skills.as_slice()
            && let BackendConfig::Builtin(name) = skill.backend
            && !(self.extended_skills.contains(&skill.id) || is_private(&skill.id))
        {
            return self.single(skill, name);
        }
        let resolved = self.resolve(backends);
        let mut settings = self.settings();
        settings.extensions.extend(schemas(&resolved));
        let info = self.info(&resolved);
        let skills = SkillSet::separate(resolved.into_iter().map(|resolved| resolved.skill));
        RegisteredAgent::new(info, skills.with_pending(self.pending(backends)))
            .with_dedupe(self.dedupe)
            .with_retention(self.retention)
            .with_settings(settings)
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
            version: VERSION.into(),
            input_modes,
            output_modes,
        }
    }

    /// An agent with one built-in skill is the built-in agent itself; its main skill gets the configured id. Its other
    /// skills stay on the card unchanged, because the agent selects among them itself.
    fn single(&self, skill: &SkillConfig, name: &str) -> RegisteredAgent {
        let builtin = builtins::find(name).expect("the name was read from the list of built-in agents");
        let own = builtin.info().clone();
        let info = AgentInfo {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or(own.name),
            description: self.description.clone().unwrap_or(own.description),
            ..own
        };
        RegisteredAgent::new(info, builtin.skills().clone())
            .with_skill(name, |main| main.card = skill.present(main.card.clone()))
            .with_dedupe(self.dedupe)
            .with_retention(self.retention)
            .with_settings(self.settings())
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

    /// The MCP servers whose tools are not known yet.
    fn pending(&self, backends: &Backends) -> Vec<String> {
        let unknown = |source: &SkillSource| match source {
            SkillSource::Mcp { server, .. } if backends.tools(server).is_none() => Some(server.clone()),
            _ => None,
        };
        self.skills.iter().filter_map(unknown).collect()
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
