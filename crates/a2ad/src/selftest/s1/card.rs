//! The card of the draft.

use axum::{Router, routing::get};
use client::{Options, find_card};
use protocol::AgentCard;

use crate::{
    Profile,
    agents::Echo,
    selftest::{
        Checked, Trouble, door::fresh, fixture::Fixture, json::Json, schema::Strangers, stage::Stage, wrong,
    },
};

pub(super) async fn path(at: &Fixture) -> Checked {
    let card = at.old_card().await?;
    let kind = card.header("content-type").unwrap_or_default();
    card.must(kind.starts_with("application/json"), "content-type: application/json")?;
    for card in at.old_cards(EVERYONE).await? {
        card.filled("name")?;
    }
    Ok(())
}

/// An agent of each house, and those that are special in one way.
const EVERYONE: &[&str] =
    &["fold", "pinkfish", "agent-native", "agentos", "terse", "quiet", "keyed", "brief"];

pub(super) async fn required(at: &Fixture) -> Checked {
    let card = at.old_card().await?;
    for name in ["name", "url", "version"] {
        card.filled(name)?;
    }
    card.at("capabilities")?;
    card.must(card.count("skills") > 0, "skills")
}

/// No agent of a configuration has a provider or documents, so those are asked of our client.
pub(super) async fn optional(at: &Fixture) -> Checked {
    let card = at.old_card().await?;
    card.text("description")?;
    card.texts("authentication.schemes")?;
    let other = read(SAMPLE).await?;
    let provider = other.provider.as_ref().map(|one| (one.organization.as_str(), one.url.as_str()));
    if provider != Some(("Google", "https://google.com")) {
        return Err(wrong("the sample's provider", format!("{provider:?}")));
    }
    match other.documentation_url.as_deref() {
        Some("https://maps-agent.google.com/docs") => Ok(()),
        read => Err(wrong("the sample's documentationUrl", format!("{read:?}"))),
    }
}

pub(super) async fn capabilities(at: &Fixture) -> Checked {
    let card = at.old_card().await?;
    let names = ["streaming", "pushNotifications", "stateTransitionHistory"];
    for name in names.map(|name| format!("capabilities.{name}")) {
        card.must(matches!(card.at(&name)?, Json::Bool(_)), &format!("a flag at {name}"))?;
    }
    // What somebody else's agents offer is theirs to say.
    if at.is_ours() {
        card.reads(
            "capabilities",
            r#"{"streaming":true,"pushNotifications":false,"stateTransitionHistory":false}"#,
        )?;
        at.card("quiet", "agent.json").await?.is("capabilities.streaming", false)?;
    }
    let bare = read(BARE).await?.capabilities;
    let none = [bare.streaming, bare.push_notifications].iter().all(|flag| *flag != Some(true));
    if none { Ok(()) } else { Err(wrong("no capability where a card names none", format!("{bare:?}"))) }
}

/// All that a card has to have.
const BARE: &str = r#"{"name":"Bare","url":"https://bare.example","version":"1","capabilities":{},
"skills":[{"id":"do","name":"Do"}]}"#;

pub(super) async fn default_modes(at: &Fixture) -> Checked {
    let card = at.card("agentos", "agent.json").await?;
    card.reads("defaultInputModes", r#"["text"]"#)?;
    card.reads("defaultOutputModes", r#"["text"]"#)?;
    // They are also those of a card that names none.
    let bare = read(BARE).await?;
    let modes = [bare.default_input_modes, bare.default_output_modes];
    if modes == [["text"], ["text"]] { Ok(()) } else { Err(wrong("text in and out", format!("{modes:?}"))) }
}

pub(super) async fn skill_members(at: &Fixture) -> Checked {
    for skill in at.old_card().await?.list("skills")? {
        skill.filled("id")?;
        skill.filled("name")?;
        skill.filled("description")?;
        skill.texts("tags")?;
        if skill.find("examples").is_some() {
            skill.texts("examples")?;
        }
    }
    Ok(())
}

pub(super) async fn skill_modes(at: &Fixture) -> Checked {
    at.root("slow-writer")?;
    let card = at.old_card().await?;
    let writer = card.list("skills")?.iter().find(|skill| skill.is("id", "slow-writer").is_ok());
    let writer = writer.ok_or_else(|| wrong("the skill slow-writer", &card))?;
    writer.reads("inputModes", r#"["text/plain"]"#)?;
    writer.reads("outputModes", r#"["text/plain"]"#)?;
    let others = card.count("defaultInputModes") > 1;
    card.must(others, "more modes of the agent than of this skill")?;
    // An image is one of the agent's modes and none of this skill's.
    let image =
        r#"{"role":"user","parts":[{"type":"file","file":{"mimeType":"image/png","bytes":"iVBORw=="}}]}"#;
    at.root("slow-writer")?.send(&fresh(), image, "").await?.fails(-32005)?;
    at.root("echo")?.send(&fresh(), image, "").await?.state("completed")?;
    Ok(())
}

/// The card also has members of later generations, which the schema lets pass.
pub(super) async fn valid(at: &Fixture) -> Checked {
    at.old_card().await?.is_valid("AgentCard", Strangers::Pass)?;
    for card in at.old_cards(EVERYONE).await? {
        card.is_valid("AgentCard", Strangers::Pass)?;
    }
    Ok(())
}

/// As the draft publishes it, with all that its text lets a card have.
const SAMPLE: &str = r#"{"name":"Google Maps Agent","description":"Plan routes, remember places, and generate directions",
"url":"https://maps-agent.google.com","provider":{"organization":"Google","url":"https://google.com"},"version":"1.0.0",
"documentationUrl":"https://maps-agent.google.com/docs",
"authentication":{"schemes":"OAuth2","credentials":"ask for a private card at https://google.com"},
"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain","application/html"],
"capabilities":{"streaming":true,"pushNotifications":false},
"skills":[{"id":"route-planner","name":"Route planning","description":"Helps plan routing between two locations",
"tags":["maps","routing","navigation"],"examples":["plan my route from Sunnyvale to Mountain View"],
"outputModes":["application/html","video/mp4"]}]}"#;

/// The sample is served, and our client reads it there.
pub(super) async fn sample_is_read(_: &Fixture) -> Checked {
    let card = read(SAMPLE).await?;
    let read = (card.name.as_str(), card.skills.len(), card.interfaces.first().map(|one| one.url.as_str()));
    if read != ("Google Maps Agent", 1, Some("https://maps-agent.google.com")) {
        return Err(wrong("the sample's name, url and skill", format!("{read:?}")));
    }
    let skill = &card.skills[0];
    let modes = (skill.id.as_str(), skill.output_modes.join(", "));
    if modes != ("route-planner", "application/html, video/mp4".into()) {
        return Err(wrong("the sample's skill with its modes", format!("{modes:?}")));
    }
    wants_oauth2(&card)
}

fn wants_oauth2(card: &AgentCard) -> Checked {
    let scheme = |name: &String| name.eq_ignore_ascii_case("oauth2");
    let asked = card.security_requirements.iter().flat_map(|one| &one.schemes).any(|(name, _)| scheme(name));
    if asked { Ok(()) } else { Err(wrong("the scheme OAuth2", format!("{:?}", card.security_requirements))) }
}

/// A card as our client reads it where it is served.
async fn read(card: &'static str) -> Result<AgentCard, Trouble> {
    let host =
        Stage::open(Router::new().route("/.well-known/agent.json", get(move || async move { card }))).await?;
    let found = find_card(&host.url(), &Options::default()).await;
    Ok(found.map_err(|error| wrong("a card that our client reads", error))?.card)
}

/// An agent tells on its card how to get another one, which is valid and is read.
pub(super) async fn credentials(at: &Fixture) -> Checked {
    let card = at.card("keyed", "agent.json").await?;
    card.must(card.count("authentication.schemes") > 0, "schemes")?;
    let way = "ask for a private card at https://example.com";
    let mut style = Profile::neutral();
    style.card.style.credentials = Some(way.into());
    let server = crate::Server::builder().agent("telling", Echo).profile("telling", style).build();
    let server = server.map_err(|error| wrong("a server that starts", error))?;
    let host = Stage::open(server.router()).await?;
    let card = host.server.get("/a2a/telling/.well-known/agent.json", &[]).await?;
    card.is("authentication.credentials", way)?;
    card.is_valid("AgentCard", Strangers::Pass)?;
    wants_oauth2(&read(SAMPLE).await?)
}
