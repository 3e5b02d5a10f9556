//! The card of the draft.

use serde_json::Value;

use crate::{
    CheckError, CheckResult,
    card_server::CardServer,
    fixture::Fixture,
    json::ValueChecks,
    library::{read_card, serve_private},
    mismatch,
    schema::{SchemaChecks as _, UnknownMembers},
    test_client::unique_id,
};

pub(super) async fn path(at: &Fixture) -> CheckResult {
    let card = at.draft_card().await?;
    let kind = card.header("content-type").unwrap_or_default();
    card.ensure(kind.starts_with("application/json"), "content-type: application/json")?;
    for agent in AGENTS {
        at.card(agent, "agent.json").await?.non_empty("name")?;
    }
    Ok(())
}

/// One agent for each profile, and the agents that differ in one setting.
const AGENTS: &[&str] = &["fold", "pinkfish", "agent-native", "agentos", "terse", "quiet", "keyed", "brief"];

pub(super) async fn required(at: &Fixture) -> CheckResult {
    let card = at.draft_card().await?;
    for name in ["name", "url", "version"] {
        card.non_empty(name)?;
    }
    card.at("capabilities")?;
    card.ensure(card.count("skills") > 0, "skills")
}

/// A configuration cannot set a provider or a documentation URL, so those are checked with our client.
pub(super) async fn optional(at: &Fixture) -> CheckResult {
    let card = at.draft_card().await?;
    card.text("description")?;
    card.texts("authentication.schemes")?;
    let other = fetch_card(SAMPLE).await?;
    other.is_json("provider", r#"{"organization":"Google","url":"https://google.com"}"#)?;
    other.is("documentationUrl", "https://maps-agent.google.com/docs")
}

pub(super) async fn capabilities(at: &Fixture) -> CheckResult {
    let card = at.draft_card().await?;
    let names = ["streaming", "pushNotifications", "stateTransitionHistory"];
    for name in names.map(|name| format!("capabilities.{name}")) {
        card.ensure(card.at(&name)?.is_boolean(), &format!("a boolean at {name}"))?;
    }
    let expected = r#"{"streaming":true,"pushNotifications":true,"stateTransitionHistory":false}"#;
    card.is_json("capabilities", expected)?;
    at.card("quiet", "agent.json").await?.is("capabilities.streaming", false)?;
    at.card("unnotified", "agent.json").await?.is("capabilities.pushNotifications", false)?;
    let minimal = fetch_card(MINIMAL).await?;
    let capabilities = ["capabilities.streaming", "capabilities.pushNotifications"];
    let none = capabilities.iter().all(|flag| minimal.is(flag, true).is_err());
    minimal.ensure(none, "no capability for a card without capabilities")
}

/// A card with the required members only.
const MINIMAL: &str = r#"{"name":"Bare","url":"https://bare.example","version":"1","capabilities":{},
"skills":[{"id":"do","name":"Do"}]}"#;

pub(super) async fn default_modes(at: &Fixture) -> CheckResult {
    let card = at.card("agentos", "agent.json").await?;
    card.is_json("defaultInputModes", r#"["text"]"#)?;
    card.is_json("defaultOutputModes", r#"["text"]"#)?;
    // They are also the defaults for a card without modes.
    let minimal = fetch_card(MINIMAL).await?;
    minimal.is_json("defaultInputModes", r#"["text"]"#)?;
    minimal.is_json("defaultOutputModes", r#"["text"]"#)
}

pub(super) async fn skill_members(at: &Fixture) -> CheckResult {
    for skill in at.draft_card().await?.list("skills")? {
        skill.non_empty("id")?;
        skill.non_empty("name")?;
        skill.non_empty("description")?;
        skill.texts("tags")?;
        if skill.find("examples").is_some() {
            skill.texts("examples")?;
        }
    }
    Ok(())
}

pub(super) async fn skill_modes(at: &Fixture) -> CheckResult {
    let card = at.draft_card().await?;
    let writer = card.list("skills")?.iter().find(|skill| skill.is("id", "slow-writer").is_ok());
    let writer = writer.ok_or_else(|| mismatch("the skill slow-writer", &card))?;
    writer.is_json("inputModes", r#"["text/plain"]"#)?;
    writer.is_json("outputModes", r#"["text/plain"]"#)?;
    let others = card.count("defaultInputModes") > 1;
    card.ensure(others, "more modes of the agent than of this skill")?;
    // image/png is accepted by the agent and not by this skill.
    let image =
        r#"{"role":"user","parts":[{"type":"file","file":{"mimeType":"image/png","bytes":"iVBORw=="}}]}"#;
    at.root("slow-writer").send(&unique_id(), image, "").await?.has_error_code(-32005)?;
    at.root("echo").send(&unique_id(), image, "").await?.has_state("completed")?;
    Ok(())
}

/// The card also has members of later protocol generations, which the schema permits.
pub(super) async fn valid(at: &Fixture) -> CheckResult {
    at.draft_card().await?.matches_schema("AgentCard", UnknownMembers::Allow)?;
    for agent in AGENTS {
        at.card(agent, "agent.json").await?.matches_schema("AgentCard", UnknownMembers::Allow)?;
    }
    Ok(())
}

/// The draft's sample card, extended by the optional members that the draft's text defines.
const SAMPLE: &str = r#"{"name":"Google Maps Agent","description":"Plan routes, remember places, and generate directions",
"url":"https://maps-agent.google.com","provider":{"organization":"Google","url":"https://google.com"},"version":"1.0.0",
"documentationUrl":"https://maps-agent.google.com/docs",
"authentication":{"schemes":"OAuth2","credentials":"ask for a private card at https://google.com"},
"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain","application/html"],
"capabilities":{"streaming":true,"pushNotifications":false},
"skills":[{"id":"route-planner","name":"Route planning","description":"Helps plan routing between two locations",
"tags":["maps","routing","navigation"],"examples":["plan my route from Sunnyvale to Mountain View"],
"outputModes":["application/html","video/mp4"]}]}"#;

/// Our client reads the sample card from a local server.
pub(super) async fn sample_card(_: &Fixture) -> CheckResult {
    let card = fetch_card(SAMPLE).await?;
    card.is("name", "Google Maps Agent")?;
    card.is("supportedInterfaces.0.url", "https://maps-agent.google.com")?;
    card.ensure(card.count("skills") == 1, "one skill")?;
    card.is("skills.0.id", "route-planner")?;
    card.is_json("skills.0.outputModes", r#"["application/html","video/mp4"]"#)?;
    requires_oauth2(&card)
}

fn requires_oauth2(card: &Value) -> CheckResult {
    let requirements = card.list("securityRequirements")?;
    let mut schemes = requirements.iter().filter_map(|one| one.find("schemes")).flat_map(ValueChecks::names);
    card.ensure(schemes.any(|name| name.eq_ignore_ascii_case("oauth2")), "the scheme OAuth2")
}

/// Serves a card on a local server and returns it as our client reads it.
async fn fetch_card(card: &str) -> Result<Value, CheckError> {
    let host = CardServer::start("/.well-known/agent.json", card.to_owned()).await?;
    read_card(&host.url()).await
}

/// The card contains the configured instructions and is valid, and our client reads a card with instructions.
pub(super) async fn credentials(at: &Fixture) -> CheckResult {
    let card = at.card("keyed", "agent.json").await?;
    card.ensure(card.count("authentication.schemes") > 0, "schemes")?;
    let instructions = "ask for a private card at https://example.com";
    let app = serve_private(instructions).await?;
    let card = app.server.get("/a2a/private/.well-known/agent.json", &[]).await?;
    card.is("authentication.credentials", instructions)?;
    card.matches_schema("AgentCard", UnknownMembers::Allow)?;
    requires_oauth2(&fetch_card(SAMPLE).await?)
}
