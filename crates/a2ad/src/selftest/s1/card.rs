//! The card of the draft.

use axum::{Router, routing::get};
use client::{ClientOptions, find_card};
use protocol::AgentCard;

use crate::{
    agents::Echo,
    profile::Profile,
    selftest::{
        CheckError, CheckResult, fixture::Fixture, json::Json, local_server::LocalServer, mismatch,
        schema::UnknownMembers, test_client::unique_id,
    },
};

pub(super) async fn path(at: &Fixture) -> CheckResult {
    let card = at.draft_card().await?;
    let kind = card.header("content-type").unwrap_or_default();
    card.ensure(kind.starts_with("application/json"), "content-type: application/json")?;
    for card in at.draft_cards(AGENTS).await? {
        card.non_empty("name")?;
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
    let provider = other.provider.as_ref().map(|one| (one.organization.as_str(), one.url.as_str()));
    if provider != Some(("Google", "https://google.com")) {
        return Err(mismatch("the sample's provider", format!("{provider:?}")));
    }
    match other.documentation_url.as_deref() {
        Some("https://maps-agent.google.com/docs") => Ok(()),
        other => Err(mismatch("the sample's documentationUrl", format!("{other:?}"))),
    }
}

pub(super) async fn capabilities(at: &Fixture) -> CheckResult {
    let card = at.draft_card().await?;
    let names = ["streaming", "pushNotifications", "stateTransitionHistory"];
    for name in names.map(|name| format!("capabilities.{name}")) {
        card.ensure(matches!(card.at(&name)?, Json::Bool(_)), &format!("a boolean at {name}"))?;
    }
    // The capabilities of a server at a URL are not known in advance.
    if at.is_self_started() {
        card.is_json(
            "capabilities",
            r#"{"streaming":true,"pushNotifications":false,"stateTransitionHistory":false}"#,
        )?;
        at.card("quiet", "agent.json").await?.is("capabilities.streaming", false)?;
    }
    let minimal = fetch_card(MINIMAL).await?.capabilities;
    let none = [minimal.streaming, minimal.push_notifications].iter().all(|flag| *flag != Some(true));
    if none {
        Ok(())
    } else {
        Err(mismatch("no capability for a card without capabilities", format!("{minimal:?}")))
    }
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
    let modes = [minimal.default_input_modes, minimal.default_output_modes];
    if modes == [["text"], ["text"]] {
        Ok(())
    } else {
        Err(mismatch("text as input and output mode", format!("{modes:?}")))
    }
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
    at.root("slow-writer")?;
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
    at.root("slow-writer")?.send(&unique_id(), image, "").await?.has_error_code(-32005)?;
    at.root("echo")?.send(&unique_id(), image, "").await?.has_state("completed")?;
    Ok(())
}

/// The card also has members of later protocol generations, which the schema permits.
pub(super) async fn valid(at: &Fixture) -> CheckResult {
    at.draft_card().await?.matches_schema("AgentCard", UnknownMembers::Allow)?;
    for card in at.draft_cards(AGENTS).await? {
        card.matches_schema("AgentCard", UnknownMembers::Allow)?;
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
    let members =
        (card.name.as_str(), card.skills.len(), card.interfaces.first().map(|one| one.url.as_str()));
    if members != ("Google Maps Agent", 1, Some("https://maps-agent.google.com")) {
        return Err(mismatch("the sample's name, url and skill", format!("{members:?}")));
    }
    let skill = &card.skills[0];
    let modes = (skill.id.as_str(), skill.output_modes.join(", "));
    if modes != ("route-planner", "application/html, video/mp4".into()) {
        return Err(mismatch("the sample's skill with its modes", format!("{modes:?}")));
    }
    requires_oauth2(&card)
}

fn requires_oauth2(card: &AgentCard) -> CheckResult {
    let scheme = |name: &String| name.eq_ignore_ascii_case("oauth2");
    let required =
        card.security_requirements.iter().flat_map(|one| &one.schemes).any(|(name, _)| scheme(name));
    if required {
        Ok(())
    } else {
        Err(mismatch("the scheme OAuth2", format!("{:?}", card.security_requirements)))
    }
}

/// Serves a card on a local server and returns it as our client reads it.
async fn fetch_card(card: &'static str) -> Result<AgentCard, CheckError> {
    let host =
        LocalServer::start(Router::new().route("/.well-known/agent.json", get(move || async move { card })))
            .await?;
    let found = find_card(&host.url(), &ClientOptions::default()).await;
    Ok(found.map_err(|error| mismatch("a card that our client reads", error))?.card)
}

/// The card contains the configured instructions and is valid, and our client reads a card with instructions.
pub(super) async fn credentials(at: &Fixture) -> CheckResult {
    let card = at.card("keyed", "agent.json").await?;
    card.ensure(card.count("authentication.schemes") > 0, "schemes")?;
    let instructions = "ask for a private card at https://example.com";
    let mut profile = Profile::neutral();
    profile.card.style.credentials = Some(instructions.into());
    let server = crate::Server::builder().agent("private", Echo).profile("private", profile).build();
    let server = server.map_err(|error| mismatch("a server that starts", error))?;
    let host = LocalServer::start(server.router()).await?;
    let card = host.server.get("/a2a/private/.well-known/agent.json", &[]).await?;
    card.is("authentication.credentials", instructions)?;
    card.matches_schema("AgentCard", UnknownMembers::Allow)?;
    requires_oauth2(&fetch_card(SAMPLE).await?)
}
