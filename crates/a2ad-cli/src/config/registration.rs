//! Turns configured agents into the catalog that the engine runs, with the tools that MCP servers and OpenAPI documents
//! have at the moment.

use std::collections::BTreeMap;

use engine::{Agent as _, AgentInfo, Catalog, DynAgent, OnCrash, RegisteredAgent, RunSettings};
use outbound::{
    agents::{self, Route, Router},
    skill::{Skill, SkillAgent, schemas_extension},
};
use protocol::model::AgentSkill;

use super::{AgentConfig, BackendConfig, Config, Selection, SkillConfig, SkillSource};
use crate::{backends::Backends, nearest::hint};

/// Skills that belong to one user or organisation of a platform; they are never public.
const PRIVATE_PREFIXES: [&str; 2] = ["mcp__user_", "mcp__org_"];

impl Config {
    /// All configured agents.
    pub(crate) fn catalog(&self, backends: &Backends) -> Catalog {
        let agents = self.agents.iter().map(|agent| agent.registered(backends));
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
        if let [SkillSource::Own(SkillConfig { backend: BackendConfig::Builtin(name), .. })] =
            self.skills.as_slice()
        {
            return self.single(name);
        }
        let resolved = self.resolve(backends);
        let tools = resolved.iter().filter(|skill| skill.is_tool).count();
        let extension = schemas_extension(resolved.iter().filter_map(|skill| skill.tool.as_ref()));
        let mut settings = self.settings();
        settings.extensions.extend(extension);
        let (mut input_modes, mut output_modes) = (Vec::new(), Vec::new());
        for skill in &resolved {
            merge(&mut input_modes, &skill.on_card.input_modes);
            merge(&mut output_modes, &skill.on_card.output_modes);
        }
        if resolved.is_empty() {
            // Its tools are not known yet.
            input_modes.push("application/json".into());
            output_modes.push("application/json".into());
        }
        let info = AgentInfo {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or_else(|| self.id.clone()),
            description: self.description.clone().unwrap_or_else(|| describe(&resolved, tools)),
            version: env!("CARGO_PKG_VERSION").into(),
            skills: resolved.iter().map(|skill| skill.on_card.clone()).collect(),
            input_modes,
            output_modes,
        };
        let run_settings: Vec<_> =
            resolved.iter().map(|skill| (skill.on_card.id.clone(), skill.run_settings())).collect();
        let routes = resolved.into_iter().map(ResolvedSkill::into_route).collect();
        let router = Router::new(routes).with_pending(self.pending(backends));
        let registered = RegisteredAgent::new(info, DynAgent::new(router))
            .with_dedupe(self.dedupe)
            .with_retention(self.retention)
            .with_settings(settings);
        with_run_settings(registered, run_settings)
    }

    /// An agent with one built-in skill is the built-in agent itself; its main skill gets the configured id. Its other
    /// skills stay on the card unchanged, because the agent selects among them itself.
    fn single(&self, builtin: &'static str) -> RegisteredAgent {
        let Some(SkillSource::Own(skill)) = self.skills.first() else {
            unreachable!("it has one skill of the file")
        };
        let (info, agent) = built_in(builtin);
        let present = |own: AgentSkill| if own.id == builtin { skill.present(own) } else { own };
        let info = AgentInfo {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or(info.name),
            description: self.description.clone().unwrap_or(info.description),
            skills: info.skills.into_iter().map(present).collect(),
            ..info
        };
        RegisteredAgent::new(info, agent)
            .with_dedupe(self.dedupe)
            .with_retention(self.retention)
            .with_settings(self.settings())
            .with_run_settings(skill.runs)
    }

    /// The skills of the agent, with unique ids, without those that nobody may use.
    fn resolve(&self, backends: &Backends) -> Vec<ResolvedSkill> {
        let mut found: Vec<ResolvedSkill> =
            self.skills.iter().flat_map(|source| resolve_source(source, backends)).collect();
        rename_collisions(&mut found);
        found.retain(|skill| self.is_callable(&skill.on_card.id));
        found
    }

    /// Whether some caller may use a skill.
    fn is_callable(&self, skill: &str) -> bool {
        let extended = || self.extended_skills.iter().any(|one| one == skill);
        let public = self.skills_allow.is_empty() || self.skills_allow.iter().any(|one| one == skill);
        let private = PRIVATE_PREFIXES.into_iter().any(|prefix| skill.starts_with(prefix));
        (public && !private) || extended()
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

/// A skill of an agent, ready to run.
struct ResolvedSkill {
    on_card: AgentSkill,
    agent: DynAgent,
    /// Where it comes from, for a unique id.
    origin: Option<String>,
    /// Routing keywords beside its tags.
    keywords: Vec<String>,
    runs: RunSettings,
    /// Set for skills with a backend outside the process.
    tool: Option<Skill>,
    is_tool: bool,
}

impl ResolvedSkill {
    fn of_tool(skill: Skill, origin: Option<String>, runs: RunSettings) -> Self {
        Self {
            on_card: skill.on_card(),
            agent: DynAgent::new(SkillAgent::new(skill.clone())),
            origin,
            keywords: Vec::new(),
            runs,
            tool: Some(skill),
            is_tool: true,
        }
    }

    fn of_builtin(config: &SkillConfig, name: &'static str) -> Self {
        let (info, agent) = built_in(name);
        let on_card = AgentSkill {
            input_modes: info.input_modes.clone(),
            output_modes: info.output_modes.clone(),
            ..config.present(main_skill(&info))
        };
        Self {
            on_card,
            agent,
            origin: None,
            keywords: agents::keywords(name),
            runs: config.runs,
            tool: None,
            is_tool: false,
        }
    }

    fn rename(&mut self, id: String) {
        if let Some(tool) = &mut self.tool {
            tool.id.clone_from(&id);
            self.agent = DynAgent::new(SkillAgent::new(tool.clone()));
        }
        self.on_card.name.clone_from(&id);
        self.on_card.id = id;
    }

    /// What applies to its tasks; `on_crash` is always set, because a router may run any of its skills.
    fn run_settings(&self) -> RunSettings {
        let on_crash = self.runs.on_crash.unwrap_or_else(|| self.agent.policy().on_crash);
        RunSettings { on_crash: Some(on_crash), ..self.runs }
    }

    fn into_route(self) -> Route {
        let route = Route::new(self.on_card, self.agent).with_keywords(self.keywords);
        match self.tool.and_then(|tool| tool.input_schema) {
            Some(schema) => route.with_arguments(move |arguments| schema.allows(arguments)),
            None => route,
        }
    }
}

fn resolve_source(source: &SkillSource, backends: &Backends) -> Vec<ResolvedSkill> {
    match source {
        SkillSource::Own(config) => vec![own_skill(config, backends)],
        SkillSource::Mcp { server, tool } => selected(backends.tool_skills(server), server, tool),
        SkillSource::OpenApi { document, operation } => {
            selected(backends.operations(document), document, operation)
        }
    }
}

fn selected(skills: Vec<Skill>, origin: &str, selection: &Selection) -> Vec<ResolvedSkill> {
    let chosen = skills.into_iter().filter(|skill| selection.contains(&skill.id));
    chosen
        .map(|skill| ResolvedSkill::of_tool(skill, Some(origin.to_owned()), RunSettings::default()))
        .collect()
}

fn own_skill(config: &SkillConfig, backends: &Backends) -> ResolvedSkill {
    let skill = match &config.backend {
        BackendConfig::Builtin(name) => return ResolvedSkill::of_builtin(config, name),
        BackendConfig::Mcp { server, tool } => backends.tool_skill(server, tool),
        BackendConfig::Ready { kind, backend, on_crash } => Skill {
            id: config.id.clone(),
            description: format!("Runs {} with a backend of the kind {kind}", config.id),
            tags: Vec::new(),
            examples: Vec::new(),
            input_schema: None,
            output_schema: None,
            on_crash: *on_crash,
            backend: backend.clone(),
        },
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
    ResolvedSkill::of_tool(skill, None, config.runs)
}

/// Tools and operations with the same id as another skill of the agent get the name of their server or document in
/// front: `SERVER__TOOL`.
fn rename_collisions(skills: &mut [ResolvedSkill]) {
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for skill in skills.iter() {
        *uses.entry(skill.on_card.id.clone()).or_default() += 1;
    }
    for skill in skills {
        if uses[&skill.on_card.id] > 1
            && let Some(origin) = &skill.origin
        {
            let id = format!("{origin}__{}", skill.on_card.id);
            skill.rename(id);
        }
    }
}

fn describe(skills: &[ResolvedSkill], tools: usize) -> String {
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

fn built_in(name: &str) -> (AgentInfo, DynAgent) {
    let found = agents::info(name).zip(agents::builtin(name));
    found.expect("the name was read from the list of built-in agents")
}

fn merge(modes: &mut Vec<String>, more: &[String]) {
    for mode in more {
        if !modes.contains(mode) {
            modes.push(mode.clone());
        }
    }
}
