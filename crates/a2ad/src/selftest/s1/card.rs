//! The card of the draft.

use axum::{Router, routing::get};
use inbound::listen;
use protocol::{
    dialect::draft,
    json::read::{Node, Path},
};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::selftest::{
    Checked, Trouble, fixture::Fixture, http::Server, json::Json, schema::Strangers, wrong,
};

pub(super) async fn path(at: &Fixture) -> Checked {
    let card = at.old_card().await?;
    let kind = card.header("content-type").unwrap_or_default();
    card.must(kind.starts_with("application/json"), "content-type: application/json")?;
    at.card("agentos", "agent.json").await?;
    Ok(())
}

pub(super) async fn required(at: &Fixture) -> Checked {
    let card = at.old_card().await?;
    for name in ["name", "url", "version"] {
        card.filled(name)?;
    }
    card.at("capabilities")?;
    card.must(card.count("skills") > 0, "skills")
}

pub(super) async fn optional(at: &Fixture) -> Checked {
    let card = at.old_card().await?;
    card.filled("description")?;
    card.texts("authentication.schemes")?;
    if card.find("provider").is_some() {
        card.filled("provider.organization")?;
    }
    if card.find("documentationUrl").is_some() {
        card.filled("documentationUrl")?;
    }
    Ok(())
}

pub(super) async fn capabilities(at: &Fixture) -> Checked {
    let card = at.old_card().await?;
    card.is("capabilities.streaming", true)?;
    for name in ["pushNotifications", "stateTransitionHistory"] {
        card.is(&format!("capabilities.{name}"), false)?;
    }
    at.card("quiet", "agent.json").await?.is("capabilities.streaming", false)
}

pub(super) async fn default_modes(at: &Fixture) -> Checked {
    let card = at.card("agentos", "agent.json").await?;
    card.reads("defaultInputModes", r#"["text"]"#)?;
    card.reads("defaultOutputModes", r#"["text"]"#)
}

pub(super) async fn skill_members(at: &Fixture) -> Checked {
    for skill in at.old_card().await?.list("skills")? {
        skill.filled("id")?;
        skill.filled("name")?;
        skill.filled("description")?;
        skill.texts("tags")?;
        skill.texts("examples")?;
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
    card.must(others, "more modes of the agent than of this skill")
}

/// The card also has members of later generations, which the schema lets pass.
pub(super) async fn valid(at: &Fixture) -> Checked {
    at.old_card().await?.is_valid("AgentCard", Strangers::Pass)?;
    at.card("agentos", "agent.json").await?.is_valid("AgentCard", Strangers::Pass)?;
    at.card("keyed", "agent.json").await?.is_valid("AgentCard", Strangers::Pass)
}

/// As the draft publishes it.
const SAMPLE: &str = r#"{"name":"Google Maps Agent","description":"Plan routes, remember places, and generate directions",
"url":"https://maps-agent.google.com","provider":{"organization":"Google","url":"https://google.com"},"version":"1.0.0",
"authentication":{"schemes":"OAuth2","credentials":"ask for a private card at https://google.com"},
"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain","application/html"],
"capabilities":{"streaming":true,"pushNotifications":false},
"skills":[{"id":"route-planner","name":"Route planning","description":"Helps plan routing between two locations",
"tags":["maps","routing","navigation"],"examples":["plan my route from Sunnyvale to Mountain View"],
"outputModes":["application/html","video/mp4"]}]}"#;

/// The sample is served, fetched, and read by what reads cards for our clients: they are judged here, not the server.
pub(super) async fn sample_is_read(_: &Fixture) -> Checked {
    let failed = |error: std::io::Error| wrong("a server for the sample", error);
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
    let server = Server { host: listener.local_addr().map_err(failed)?.to_string() };
    let app = Router::new().route("/.well-known/agent.json", get(|| async { SAMPLE }));
    let mut serving = JoinSet::new();
    serving.spawn(listen::serve(listener, app, listen::Caps::default(), CancellationToken::new()));

    let answer = server.get("/.well-known/agent.json", &[]).await?;
    let card = read(&String::from_utf8_lossy(answer.body()))?;
    let read = (card.name.as_str(), card.skills.len(), card.interfaces.first().map(|one| one.url.as_str()));
    if read != ("Google Maps Agent", 1, Some("https://maps-agent.google.com")) {
        return Err(wrong("the sample's name, url and skill", format!("{read:?}")));
    }
    let scheme = |name: &String| name.eq_ignore_ascii_case("oauth2");
    let asked = card.security_requirements.iter().flat_map(|one| &one.schemes).any(|(name, _)| scheme(name));
    if asked { Ok(()) } else { Err(wrong("the scheme OAuth2", format!("{:?}", card.security_requirements))) }
}

fn read(text: &str) -> Result<protocol::AgentCard, Trouble> {
    let json = protocol::Json::parse(text).map_err(|error| wrong("JSON", error))?;
    draft::card::decode(Node::new(json.as_raw(), &Path::Root))
        .map_err(|violation| wrong("a card that can be read", format!("{violation:?}")))
}

/// A card that wants a credential says so where the draft looks for it; a card that says how to get one is valid and
/// is read.
pub(super) async fn credentials(at: &Fixture) -> Checked {
    let card = at.card("keyed", "agent.json").await?;
    card.must(card.count("authentication.schemes") > 0, "schemes")?;
    if card.find("authentication.credentials").is_some() {
        card.filled("authentication.credentials")?;
    }
    let telling = SAMPLE.replace(r#""schemes":"OAuth2""#, r#""schemes":["OAuth2"]"#);
    Json::parse(&telling)?.is_valid("AgentCard", Strangers::Pass)?;
    read(&telling).map(|_| ())
}
