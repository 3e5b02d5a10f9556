//! `[agents]`.
//!
//! A file without agents, skills, MCP servers, OpenAPI documents and a skills folder gets the demo agents; without agents,
//! everything else becomes one agent, `main`.

use std::collections::BTreeMap;

use a2ad::internal::assembly::{
    Backends, Document, Provider, Selection, Selector, SkillAgent, SkillBackend, SkillConfig, SkillSource,
};
use engine::{AgentSettings, Dedupe, EndUser, Profile, Retention, RunSettings, push::PushEvents};
use inbound::{AuthOptions, ExtendedCard, ReplyForm};
use outbound::backends::mcp::McpConfig;
use protocol::{hint, model::SecurityScheme};

use super::{
    AgentAuth, AgentConfig, ProfileName, auth, extensions,
    read::{Parsed, Section},
    sections,
    skills_folder::FolderSkills,
    tree::Item,
    values::{self, text},
};
use crate::builtins;

/// The id of the agent that has all skills when the file defines no agent.
const MAIN_AGENT: &str = "main";
/// The entry of an agent's list that stands for all skills.
const EVERYTHING: &str = "*";

impl ProfileName {
    pub(crate) const NAMES: [(&'static str, Self); 5] = [
        ("neutral", Self::Neutral),
        ("fold", Self::Fold),
        ("pinkfish", Self::Pinkfish),
        ("agent-native", Self::AgentNative),
        ("agentos", Self::Agentos),
    ];
}

pub(crate) const REPLY_NAMES: [(&str, ReplyForm); 2] =
    [("task", ReplyForm::Task), ("message", ReplyForm::Message)];

pub(crate) const END_USER_NAMES: [(&str, EndUser); 2] =
    [("off", EndUser::Off), ("required", EndUser::Required)];

pub(crate) const EXTENDED_CARD_NAMES: [(&str, ExtendedCard); 4] = [
    ("off", ExtendedCard::Off),
    ("open", ExtendedCard::Open),
    ("protected", ExtendedCard::Protected),
    ("missing", ExtendedCard::Missing),
];

pub(crate) const DEDUPE_NAMES: [(&str, Dedupe); 3] =
    [("auto", Dedupe::Auto), ("always", Dedupe::Always), ("off", Dedupe::Off)];

/// What the skills of an agent may refer to.
pub(super) struct Sources<'a> {
    pub(super) skills: &'a [SkillConfig],
    pub(super) mcp: &'a BTreeMap<String, McpConfig>,
    pub(super) openapi: &'a BTreeMap<String, Document>,
    /// Not by name: a file that is removed from the folder must not make the configuration invalid.
    pub(super) folder: Option<&'a FolderSkills>,
}

/// Whether the skills of an entry are known only when the server runs.
pub(crate) fn is_open_ended(source: &SkillSource, documents: &BTreeMap<String, Document>) -> bool {
    match source {
        SkillSource::Own(_) => false,
        SkillSource::Provided { by: Provider::Mcp(_), .. } => true,
        SkillSource::Provided { by: Provider::OpenApi(document), .. } => {
            matches!(documents.get(document), Some(Document::Fetched { .. }))
        }
    }
}

impl Sources<'_> {
    /// Everything: the skills of the file and of the folder, all tools and all operations.
    fn all(&self) -> Vec<SkillSource> {
        let in_file = everything(self.skills, self.mcp, self.openapi);
        let in_folder = |folder: &FolderSkills| everything(&folder.skills, &folder.mcp, &folder.openapi);
        in_file.into_iter().chain(self.folder.map(in_folder).unwrap_or_default()).collect()
    }
}

/// What an agent has unless it sets something else.
pub(super) struct Defaults<'a> {
    pub(super) retention: Retention,
    pub(super) auth: AgentAuth,
    /// What the server can verify, for the cards of all agents.
    pub(super) options: &'a AuthOptions,
}

fn everything(
    skills: &[SkillConfig],
    mcp: &BTreeMap<String, McpConfig>,
    openapi: &BTreeMap<String, Document>,
) -> Vec<SkillSource> {
    let own = skills.iter().cloned().map(SkillSource::Own);
    let servers = mcp.keys().cloned().map(Provider::Mcp);
    let providers = servers.chain(openapi.keys().cloned().map(Provider::OpenApi));
    own.chain(providers.map(|by| SkillSource::Provided { by, selection: Selection::All })).collect()
}

/// The tables of which any makes a file that replaces the demo.
const TABLES: [&str; 4] = ["agents", "skills", "mcp", "openapi"];

/// The ids of all agents: those of the file, else `main`, else those of the demo.
pub(super) fn ids(file: &Section<'_>) -> Vec<String> {
    if file.has("agents") {
        return file.open("agents").names().map(str::to_owned).collect();
    }
    let folder = file.open("server").value("skills_dir", text);
    if folder.is_empty() && !TABLES.into_iter().any(|table| file.has(table)) {
        return builtins::demo_names().into_iter().map(str::to_owned).collect();
    }
    vec![MAIN_AGENT.to_owned()]
}

/// All agents of the file.
pub(super) fn agents(file: &Section<'_>, known: &Sources<'_>, defaults: &Defaults<'_>) -> Vec<AgentConfig> {
    let agents = file.open("agents");
    if known.folder.is_none() && !TABLES.into_iter().any(|table| file.has(table)) {
        return builtins::demo_names().into_iter().map(|name| builtin(name, defaults)).collect();
    }
    if !file.has("agents") {
        let skills = known.all();
        if skills.is_empty() && known.folder.is_none() {
            file.report(
                "skills",
                "expected at least one skill, such as [skills.hello] with builtin = \"echo\"",
            );
        }
        return vec![AgentConfig::new(MAIN_AGENT, skills, defaults)];
    }
    if agents.names().next().is_none() {
        file.report("agents", "expected at least one agent, such as [agents.main]");
    }
    if known.folder.is_some() && !agents.names().any(|id| has_everything(&agents.open(id))) {
        let text =
            "no agent has the skills of the folder; leave out the skills of an agent, or list \"*\" there";
        file.open("server").report("skills_dir", text);
    }
    agents.names().map(|id| agent(&agents, id, known, defaults)).collect()
}

/// The agent at `/` among these, of which some are enabled: the configured one, the only one, or `main`; else none, and
/// the id is empty.
pub(super) fn default_agent(server: &Section<'_>, agents: &[(&str, bool)]) -> String {
    let ids = || agents.iter().filter(|(_, enabled)| *enabled).map(|(id, _)| *id);
    let named = server.value("default_agent", text);
    if named.is_empty() {
        let demo = builtins::demo_names()[0];
        let only = ids().next().filter(|_| ids().count() == 1);
        let chosen =
            only.or_else(|| [MAIN_AGENT, demo].into_iter().find(|id| ids().any(|known| known == *id)));
        if !agents.is_empty() && ids().next().is_none() {
            server.report("default_agent", "no agent is enabled; enable at least one");
        }
        return chosen.unwrap_or_default().to_owned();
    }
    if !ids().any(|id| id == named) {
        server.report("default_agent", format!("no agent {named:?} is enabled; {}", hint(&named, ids())));
    }
    named
}

pub(crate) const PUSH_EVENT_NAMES: [(&str, PushEvents); 3] =
    [("status", PushEvents::STATUS), ("progress", PushEvents::PROGRESS), ("artifact", PushEvents::ARTIFACT)];

impl AgentConfig {
    fn new(id: &str, skills: Vec<SkillSource>, defaults: &Defaults<'_>) -> Self {
        let profile = ProfileName::default();
        let preset = profile.preset();
        let settings = AgentSettings {
            push: preset.push_default,
            profile: preset,
            auth: defaults.auth.methods(),
            security: security(&defaults.auth, defaults),
            ..AgentSettings::default()
        };
        let definition = SkillAgent {
            id: id.into(),
            name: None,
            description: None,
            version: None,
            skills,
            extended_skills: Vec::new(),
            skills_allow: Vec::new(),
            settings,
            dedupe: Dedupe::default(),
            retention: defaults.retention,
            runs: RunSettings::default(),
        };
        Self { definition, profile, reply: None, auth: defaults.auth.clone() }
    }
}

/// What webhooks are notified about: all listed events together.
fn push_events(section: &Section<'_>) -> PushEvents {
    let listed = section.list("push_events", |item| item.one_of(&PUSH_EVENT_NAMES));
    listed.into_iter().reduce(PushEvents::and).unwrap_or_default()
}

fn security(auth: &AgentAuth, defaults: &Defaults<'_>) -> Vec<(String, SecurityScheme)> {
    inbound::security_schemes(auth.declared().iter().copied(), &defaults.options.issuers)
}

/// A built-in agent under its own name.
fn builtin(name: &'static str, defaults: &Defaults<'_>) -> AgentConfig {
    let builtin = builtins::find(name).expect("the name is that of a built-in agent");
    let skill = SkillConfig::new(name, SkillBackend::Builtin(builtin));
    AgentConfig::new(name, vec![SkillSource::Own(skill)], defaults)
}

fn agent(agents: &Section<'_>, id: &str, known: &Sources<'_>, defaults: &Defaults<'_>) -> AgentConfig {
    check_name(agents, id);
    if inbound::is_reserved_agent_id(id) {
        agents.report(
            id,
            format!("{id:?} is reserved: the server uses this path below /a2a; choose another name"),
        );
    }
    let section = agents.open(id);
    let profile = section.value("profile", |item| item.one_of(&ProfileName::NAMES));
    let preset = profile.preset();
    let max_tasks = defaults.retention.max_tasks.or(preset.max_tasks);
    let default_retention = Retention { max_tasks, ..defaults.retention };
    let reply = section.get("reply", |item| item.one_of(&REPLY_NAMES));
    let auth = auth::listed(&section, defaults.options).unwrap_or_else(|| defaults.auth.clone());
    let security = security(&auth, defaults);
    let defaults = AgentConfig::new(id, own_skills(&section, known), defaults).definition;
    let settings = AgentSettings {
        enabled: section.value("enabled", Item::boolean),
        streaming: section.value("streaming", Item::boolean),
        keep_alive: section.value("keep_alive", Item::boolean),
        push: section.get("push", Item::boolean).unwrap_or(preset.push_default),
        push_events: push_events(&section),
        extended_card: section.value("extended_card", |item| item.one_of(&EXTENDED_CARD_NAMES)),
        extensions: extensions::extensions(&section),
        check_media_types: section.value("check_media_types", Item::boolean),
        profile: Profile { reply: reply.unwrap_or(preset.reply), ..preset },
        auth: auth.methods(),
        end_user: section.value("end_user", |item| item.one_of(&END_USER_NAMES)),
        security,
        concurrent: section.value("concurrent", values::count),
    };
    let agent = SkillAgent {
        name: section.get("name", text),
        description: section.get("description", text),
        settings,
        dedupe: section.value("dedupe", |item| item.one_of(&DEDUPE_NAMES)),
        retention: sections::retention(&section.open("retention"), default_retention),
        ..defaults
    };
    let definition = SkillAgent {
        extended_skills: extended_skills(&section, &agent, profile, known),
        skills_allow: listed_skills(&section, "skills_allow", &agent, known),
        ..agent
    };
    AgentConfig { definition, profile, reply, auth }
}

/// Skills that only the extended card shows. They must be skills of the agent, and the extended card must be
/// available.
fn extended_skills(
    section: &Section<'_>,
    agent: &SkillAgent,
    profile: ProfileName,
    known: &Sources<'_>,
) -> Vec<String> {
    let off = agent.settings.extended_card == ExtendedCard::Off;
    if !off && profile.preset().send_only {
        section.report(
            "extended_card",
            "this profile serves only sends, so no client could request the extended card",
        );
    }
    let named = listed_skills(section, "extended_skills", agent, known);
    if off && !named.is_empty() {
        let text = "there is no extended card to show them; set extended_card = \"open\" or \"protected\"";
        section.report("extended_skills", text);
    }
    named
}

/// A list of ids of the agent's skills. The names of tools and of fetched operations are known only when the server runs, and
/// those of the folder change, so an agent that has some may list any.
fn listed_skills(section: &Section<'_>, key: &str, agent: &SkillAgent, known: &Sources<'_>) -> Vec<String> {
    if !section.has(key) {
        return Vec::new();
    }
    let (documents, has_folder) = (known.openapi, known.folder.is_some());
    // Without skills a problem is already reported.
    let open_ended = has_folder
        || agent.skills.is_empty()
        || agent.skills.iter().any(|source| is_open_ended(source, documents));
    let registered = agent.registered(&Backends::not_started(documents));
    let ids = || registered.skills().iter().map(|skill| skill.id());
    if let [SkillSource::Own(only)] = agent.skills.as_slice()
        && ids().count() > 1
    {
        let text = format!(
            "the built-in agent of {:?} chooses among its skills itself; give the agent a skill for each instead",
            only.id
        );
        section.report(key, text);
    }
    let named = section.each(key, |item| {
        let name = item.text()?;
        if open_ended || ids().any(|id| id == name) {
            return Ok(name.to_owned());
        }
        Err(format!("the agent has no skill {name:?}; {}", hint(name, ids())))
    });
    named.unwrap_or_default()
}

/// The skills an agent lists; everything if it lists none.
fn own_skills(section: &Section<'_>, known: &Sources<'_>) -> Vec<SkillSource> {
    let mut seen = Vec::new();
    let named = section.each("skills", |item| {
        let name = item.text()?;
        if seen.contains(&name.to_owned()) {
            return Err(format!("{name:?} is listed twice"));
        }
        seen.push(name.to_owned());
        sources(name, known)
    });
    let all = || if section.has("skills") { None } else { Some(known.all()) };
    let named = named.map(|named| named.into_iter().flatten().collect());
    let Some(own) = named.or_else(all) else { return Vec::new() };
    if own.is_empty() && known.folder.is_none() {
        section.report("skills", "expected at least one skill; define one as [skills.ID] with a backend");
    }
    own
}

/// Whether an agent also has the skills of the folder.
fn has_everything(agent: &Section<'_>) -> bool {
    let listed = agent.each("skills", text);
    !agent.has("skills") || listed.is_some_and(|listed| listed.iter().any(|name| name == EVERYTHING))
}

/// What one entry of an agent's list of skills stands for.
fn sources(text: &str, known: &Sources<'_>) -> Parsed<Vec<SkillSource>> {
    if text.starts_with("pipeline:") {
        return Err(format!("{text:?}: this version of a2ad does not support such skills yet"));
    }
    match Selector::parse(text)? {
        Selector::Everything => Ok(known.all()),
        Selector::Skill(id) => {
            let found = known.skills.iter().find(|skill| skill.id == id);
            let own = found.cloned().map(SkillSource::Own);
            own.map(|own| vec![own]).ok_or_else(|| unknown_skill(id, known.skills))
        }
        Selector::Provided(by, selection) => {
            check_provided(text, &by, &selection, known)?;
            Ok(vec![SkillSource::Provided { by, selection }])
        }
    }
}

/// Checks that there is what an entry selects, as far as that is known.
fn check_provided(text: &str, by: &Provider, selection: &Selection, known: &Sources<'_>) -> Parsed<()> {
    let (table, name) = (by.kind(), by.name());
    let names: Vec<&str> = match by {
        Provider::Mcp(_) => known.mcp.keys().map(String::as_str).collect(),
        Provider::OpenApi(_) => known.openapi.keys().map(String::as_str).collect(),
    };
    if names.is_empty() {
        return Err(format!("{text:?}: there is no {name:?}; define it as [{table}.{name}]"));
    }
    if !names.contains(&name) {
        let hint = hint(name, names.into_iter());
        return Err(format!("{text:?}: there is no {name:?} in [{table}]; {hint}"));
    }
    if let (Provider::OpenApi(document), Selection::One(id)) = (by, selection)
        && let Some(Document::Read(skills)) = known.openapi.get(document)
        && !skills.iter().any(|skill| skill.id == *id)
    {
        let hint = hint(id, skills.iter().map(|skill| skill.id.as_str()));
        return Err(format!("{text:?}: the document has no operation {id:?}; {hint}"));
    }
    Ok(())
}

fn unknown_skill(name: &str, skills: &[SkillConfig]) -> String {
    if skills.is_empty() {
        return format!("there is no skill {name:?}; define it as [skills.{name}] with a backend");
    }
    let ids = skills.iter().map(|skill| skill.id.as_str());
    format!("there is no skill {name:?}; {}", hint(name, ids))
}

/// Ids are used in URL paths and in the store, so their characters are restricted.
pub(super) fn check_name(section: &Section<'_>, id: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let long = id.is_empty() || id.len() > 64;
    if (long || !id.bytes().all(plain)) && !inbound::is_reserved_agent_id(id) {
        section.report(id, "expected a name of 1 to 64 letters, digits, '-', '_', '.' or '~'");
    }
}
