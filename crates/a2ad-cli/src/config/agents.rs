//! `[skills]` and `[agents]`.
//!
//! A file with neither gets the demo agents; skills without agents become one agent, `main`.

use engine::{Dedupe, Retention, RunSettings};
use inbound::{ExtendedCard, ReplyForm};

use super::{
    AgentConfig, AuthMethod, ProfileName, SkillConfig, extensions,
    read::{Parsed, Section},
    run_settings::run_settings,
    sections,
    tree::Item,
    values,
};
use crate::nearest::hint;

/// The id of the agent that has all skills when the file defines no agent.
const MAIN_AGENT: &str = "main";

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

impl AuthMethod {
    pub(crate) const NAMES: [(&'static str, Self); 6] = [
        ("anonymous", Self::Anonymous),
        ("api-key", Self::ApiKey),
        ("jwt", Self::Jwt),
        ("oidc", Self::Oidc),
        ("bearer", Self::Bearer),
        ("mtls", Self::Mtls),
    ];
}

pub(crate) const EXTENDED_CARD_NAMES: [(&str, ExtendedCard); 4] = [
    ("off", ExtendedCard::Off),
    ("open", ExtendedCard::Open),
    ("protected", ExtendedCard::Protected),
    ("missing", ExtendedCard::Missing),
];

pub(crate) const DEDUPE_NAMES: [(&str, Dedupe); 3] =
    [("auto", Dedupe::Auto), ("always", Dedupe::Always), ("off", Dedupe::Off)];

/// All agents of the file; `default_retention` applies to agents without their own.
pub(super) fn agents(file: &Section<'_>, default_retention: Retention) -> Vec<AgentConfig> {
    let (agents, skills) = (file.open("agents"), skills(&file.open("skills")));
    if !file.has("agents") && !file.has("skills") {
        return outbound::agents::demo_names()
            .into_iter()
            .map(|name| builtin(name, default_retention))
            .collect();
    }
    if !file.has("agents") {
        if skills.is_empty() {
            file.report(
                "skills",
                "expected at least one skill, such as [skills.hello] with builtin = \"echo\"",
            );
        }
        return vec![AgentConfig::new(MAIN_AGENT, skills, default_retention)];
    }
    if agents.names().next().is_none() {
        file.report("agents", "expected at least one agent, such as [agents.main]");
    }
    agents.names().map(|id| agent(&agents, id, &skills, default_retention)).collect()
}

/// The agent at `/`: the configured one, the only one, or `main`.
pub(super) fn default_agent(server: &Section<'_>, agents: &[AgentConfig]) -> String {
    let ids = || agents.iter().filter(|agent| agent.enabled).map(|agent| agent.id.as_str());
    let named = server.get("default_agent", |item| Ok(item.text()?.to_owned())).unwrap_or_default();
    if named.is_empty() {
        let demo = outbound::agents::demo_names()[0];
        let only = ids().next().filter(|_| ids().count() == 1);
        let chosen =
            only.or_else(|| [MAIN_AGENT, demo].into_iter().find(|id| ids().any(|known| known == *id)));
        if chosen.is_none() && !agents.is_empty() {
            let names = ids().collect::<Vec<_>>().join(", ");
            server.report("default_agent", format!("name the agent at /, one of the enabled ones: {names}"));
        }
        return chosen.unwrap_or_default().to_owned();
    }
    if !ids().any(|id| id == named) {
        server.report("default_agent", format!("no agent {named:?} is enabled; {}", hint(&named, ids())));
    }
    named
}

impl AgentConfig {
    fn new(id: &str, skills: Vec<SkillConfig>, retention: Retention) -> Self {
        Self {
            id: id.into(),
            name: None,
            description: None,
            skills,
            enabled: true,
            streaming: true,
            push: false,
            extended_card: ExtendedCard::default(),
            extended_skills: Vec::new(),
            extensions: Vec::new(),
            check_media_types: true,
            profile: ProfileName::default(),
            reply: None,
            auth: vec![AuthMethod::Anonymous],
            dedupe: Dedupe::default(),
            concurrent: 0,
            retention,
        }
    }
}

/// A built-in agent under its own name.
fn builtin(name: &'static str, default_retention: Retention) -> AgentConfig {
    let skill = SkillConfig {
        id: name.into(),
        builtin: name,
        description: None,
        tags: None,
        examples: None,
        runs: RunSettings::default(),
    };
    AgentConfig::new(name, vec![skill], default_retention)
}

fn skills(section: &Section<'_>) -> Vec<SkillConfig> {
    section.names().map(|id| skill(section, id)).collect()
}

fn skill(skills: &Section<'_>, id: &str) -> SkillConfig {
    check_name(skills, id);
    let section = skills.open(id);
    let names = outbound::agents::names();
    if !section.has("builtin") {
        let names = names.join(", ");
        section.report("builtin", format!("expected the agent that does the work: builtin = one of {names}"));
    }
    let builtins: Vec<(&str, &str)> = names.iter().map(|name| (*name, *name)).collect();
    let builtin = section.get("builtin", |item| item.one_of(&builtins));
    let (description, tags, examples) =
        (section.get("description", text), section.each("tags", text), section.each("examples", text));
    // The problem is already reported. The skill is kept, so that references to it cause no further errors.
    let builtin = builtin.unwrap_or(names[0]);
    SkillConfig { id: id.into(), builtin, description, tags, examples, runs: run_settings(&section) }
}

fn agent(
    agents: &Section<'_>,
    id: &str,
    skills: &[SkillConfig],
    default_retention: Retention,
) -> AgentConfig {
    check_name(agents, id);
    if inbound::is_reserved_agent_id(id) {
        agents.report(
            id,
            format!("{id:?} is reserved: the server uses this path below /a2a; choose another name"),
        );
    }
    let section = agents.open(id);
    let push = section.get("push", Item::boolean).unwrap_or_default();
    if push {
        section.report(
            "push",
            "this version of a2ad does not send push notifications yet; remove the key or set it to false",
        );
    }
    let auth = section.each("auth", |item| item.one_of(&AuthMethod::NAMES));
    if auth.as_ref().is_some_and(Vec::is_empty) {
        section.report("auth", "expected at least one authentication method, such as \"anonymous\"");
    }
    let defaults = AgentConfig::new(id, own_skills(&section, skills), default_retention);
    let config = AgentConfig {
        name: section.get("name", text),
        description: section.get("description", text),
        enabled: section.get("enabled", Item::boolean).unwrap_or(defaults.enabled),
        streaming: section.get("streaming", Item::boolean).unwrap_or(defaults.streaming),
        push,
        extended_card: section
            .get("extended_card", |item| item.one_of(&EXTENDED_CARD_NAMES))
            .unwrap_or_default(),
        extensions: extensions::extensions(&section),
        check_media_types: section
            .get("check_media_types", Item::boolean)
            .unwrap_or(defaults.check_media_types),
        profile: section.get("profile", |item| item.one_of(&ProfileName::NAMES)).unwrap_or_default(),
        reply: section.get("reply", |item| item.one_of(&REPLY_NAMES)),
        auth: auth.unwrap_or(defaults.auth),
        dedupe: section.get("dedupe", |item| item.one_of(&DEDUPE_NAMES)).unwrap_or_default(),
        concurrent: section.get("concurrent", values::count).unwrap_or_default(),
        retention: sections::retention(&section.open("retention"), default_retention),
        ..defaults
    };
    AgentConfig { extended_skills: extended_skills(&section, &config), ..config }
}

/// Skills that only the extended card shows. They must be skills of the agent, and the extended card must be
/// available.
fn extended_skills(section: &Section<'_>, agent: &AgentConfig) -> Vec<String> {
    let off = agent.extended_card == ExtendedCard::Off;
    if !off && agent.profile.preset().send_only {
        section.report(
            "extended_card",
            "this profile serves only sends, so no client could request the extended card",
        );
    }
    let registered = agent.registered();
    let known = || registered.info().skills.iter().map(|skill| skill.id.as_str());
    let named = section.each("extended_skills", |item| {
        let name = item.text()?;
        let found = known().find(|id| *id == name).map(str::to_owned);
        found.ok_or_else(|| format!("the agent has no skill {name:?}; {}", hint(name, known())))
    });
    let named = named.unwrap_or_default();
    if off && !named.is_empty() {
        let text = "there is no extended card to show them; set extended_card = \"open\" or \"protected\"";
        section.report("extended_skills", text);
    }
    named
}

/// The skills an agent lists; all skills if it lists none.
fn own_skills(section: &Section<'_>, skills: &[SkillConfig]) -> Vec<SkillConfig> {
    let mut seen = Vec::new();
    let named = section.each("skills", |item| {
        let name = item.text()?;
        if ["mcp:", "pipeline:"].iter().any(|kind| name.starts_with(kind)) {
            return Err(format!("{name:?}: this version of a2ad does not support such skills yet"));
        }
        let known = skills.iter().find(|skill| skill.id == name);
        let known = known.ok_or_else(|| unknown_skill(name, skills))?;
        if seen.contains(&name.to_owned()) {
            return Err(format!("{name:?} is listed twice"));
        }
        seen.push(name.to_owned());
        Ok(known.clone())
    });
    let all = || if section.has("skills") { None } else { Some(skills.to_vec()) };
    let Some(own) = named.or_else(all) else { return Vec::new() };
    if own.is_empty() {
        section.report("skills", "expected at least one skill; define one as [skills.ID] with a builtin");
    }
    own
}

fn unknown_skill(name: &str, skills: &[SkillConfig]) -> String {
    if skills.is_empty() {
        return format!("there is no skill {name:?}; define it as [skills.{name}] with a builtin");
    }
    let ids = skills.iter().map(|skill| skill.id.as_str());
    format!("there is no skill {name:?}; {}", hint(name, ids))
}

fn text(item: &Item) -> Parsed<String> {
    item.text().map(str::to_owned)
}

/// Ids are used in URL paths and in the store, so their characters are restricted.
fn check_name(section: &Section<'_>, id: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let long = id.is_empty() || id.len() > 64;
    if (long || !id.bytes().all(plain)) && !inbound::is_reserved_agent_id(id) {
        section.report(id, "expected a name of 1 to 64 letters, digits, '-', '_', '.' or '~'");
    }
}
