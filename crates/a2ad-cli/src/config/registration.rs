//! Turns configured agents into the catalog that the engine runs, with the tools that MCP servers and OpenAPI documents
//! have at the moment.

mod resolved_skill;

use engine::{
    AgentInfo, AgentSettings, AuthMethods, Catalog, DynAgent, EndUser, ExtendedCard, OnCrash,
    RegisteredAgent, RunSettings, SkillSchemas,
};
use outbound::{
    agents::{KnownSkills, Route, Router},
    skill::schemas_extension,
};
use protocol::model::{AgentExtension, AgentSkill};

use super::{AgentConfig, BackendConfig, Config, SkillConfig, SkillSource};
use crate::{backends::Backends, nearest::hint};
use resolved_skill::{ResolvedSkill, built_in, is_private, resolve, with_unique_ids};

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
        settings.extensions.extend(self.schemas(&resolved));
        let extended = resolved.iter().filter(|skill| self.is_extended(skill));
        settings.extended_skills = extended.map(|skill| skill.on_card.id.clone()).collect();
        let info = self.info(&resolved);
        let run_settings: Vec<_> =
            resolved.iter().map(|skill| (skill.on_card.id.clone(), skill.run_settings())).collect();
        let schemas: Vec<_> =
            resolved.iter().map(|skill| (skill.on_card.id.clone(), skill.schemas())).collect();
        let routes = resolved.into_iter().map(|skill| self.route(skill)).collect();
        let router = Router::new(routes).with_pending(self.pending(backends)).with_changing_skills();
        let registered = RegisteredAgent::new(info, DynAgent::new(router))
            .with_dedupe(self.dedupe)
            .with_retention(self.retention)
            .with_settings(settings);
        with_schemas(with_run_settings(registered, run_settings), schemas)
    }

    /// What the card shows. Everything but the list of skills is on the public card as it is here, so it does not
    /// depend on skills that only the extended card shows.
    fn info(&self, resolved: &[ResolvedSkill]) -> AgentInfo {
        let public: Vec<_> = self.public(resolved).collect();
        let (mut input_modes, mut output_modes) = (Vec::new(), Vec::new());
        for skill in &public {
            merge(&mut input_modes, &skill.on_card.input_modes);
            merge(&mut output_modes, &skill.on_card.output_modes);
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
            skills: resolved.iter().map(|skill| skill.on_card.clone()).collect(),
            input_modes,
            output_modes,
        }
    }

    /// The schemas of the skills that the public card shows.
    fn schemas(&self, resolved: &[ResolvedSkill]) -> Option<AgentExtension> {
        schemas_extension(self.public(resolved).filter_map(|skill| skill.tool.as_ref()))
    }

    fn public<'a>(&self, resolved: &'a [ResolvedSkill]) -> impl Iterator<Item = &'a ResolvedSkill> {
        resolved.iter().filter(|skill| !self.is_extended(skill))
    }

    /// Who can get the card that shows a skill may use it.
    fn route(&self, skill: ResolvedSkill) -> Route {
        let restricted = self.is_extended(&skill) && self.extended_card != ExtendedCard::Open;
        let route = skill.into_route();
        if restricted { route.for_known_callers() } else { route }
    }

    /// An agent with one built-in skill is the built-in agent itself; its main skill gets the configured id. Its other
    /// skills stay on the card unchanged, because the agent selects among them itself.
    fn single(&self, skill: &SkillConfig, builtin: &'static str) -> RegisteredAgent {
        let (info, agent) = built_in(builtin);
        let present = |own: AgentSkill| if own.id == builtin { skill.present(own) } else { own };
        let info = AgentInfo {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or(info.name),
            description: self.description.clone().unwrap_or(info.description),
            skills: info.skills.into_iter().map(present).collect(),
            ..info
        };
        let ids = info.skills.iter().map(|skill| skill.id.clone());
        let agent = DynAgent::new(KnownSkills::new(agent, ids));
        RegisteredAgent::new(info, agent)
            .with_dedupe(self.dedupe)
            .with_retention(self.retention)
            .with_settings(self.settings())
            .with_run_settings(skill.runs)
    }

    /// The skills of the agent, with unique ids, without those that nobody may use.
    fn resolve(&self, backends: &Backends) -> Vec<ResolvedSkill> {
        let found = self.skills.iter().flat_map(|source| resolve(source, backends)).collect();
        let mut unique = with_unique_ids(found);
        unique.retain(|skill| self.is_extended(skill) || self.allows_everyone(skill));
        unique
    }

    /// Whether only the extended card shows a skill. A tool stays on that card when another server has one of the same
    /// name and both get other ids.
    fn is_extended(&self, skill: &ResolvedSkill) -> bool {
        self.extended_skills.iter().any(|listed| *listed == skill.on_card.id || *listed == skill.own_id)
    }

    fn allows_everyone(&self, skill: &ResolvedSkill) -> bool {
        let allowed = self.skills_allow.is_empty() || self.skills_allow.contains(&skill.on_card.id);
        allowed && !skill.is_private
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

fn describe(skills: &[&ResolvedSkill]) -> String {
    let tools = skills.iter().filter(|skill| skill.tool.is_some()).count();
    if tools > 0 || skills.is_empty() {
        return format!("AI agent powered by a2ad with {tools} tool(s)");
    }
    let ids: Vec<&str> = skills.iter().map(|skill| skill.on_card.id.as_str()).collect();
    format!("Has the skills {}", ids.join(", "))
}

/// Each skill has its own settings. A router may choose any of them for a task without a skill, so after a crash such a
/// task is treated as the strictest of them requires.
fn with_run_settings(registered: RegisteredAgent, skills: Vec<(String, RunSettings)>) -> RegisteredAgent {
    let strictest = [OnCrash::Fail, OnCrash::Resume]
        .into_iter()
        .find(|one| skills.iter().any(|(_, runs)| runs.on_crash == Some(*one)));
    let unnamed = RunSettings { on_crash: strictest, ..RunSettings::default() };
    let registered = registered.with_run_settings(unnamed);
    skills.into_iter().fold(registered, |registered, (id, runs)| registered.with_skill_settings(id, runs))
}

fn with_schemas(registered: RegisteredAgent, skills: Vec<(String, SkillSchemas)>) -> RegisteredAgent {
    let known = skills.into_iter().filter(|(_, schemas)| !schemas.is_empty());
    known.fold(registered, |registered, (id, schemas)| registered.with_skill_schemas(id, schemas))
}

fn merge(modes: &mut Vec<String>, more: &[String]) {
    for mode in more {
        if !modes.contains(mode) {
            modes.push(mode.clone());
        }
    }
}
