//! The list of agents at `/.well-known/agents.json`, and the search in it.

use a2ad_inbound::AgentSettings;
use engine::{AgentInfo, Catalog, DEFAULT_TENANT, RegisteredAgent, SkillSet};
use protocol::model::AgentSkill;

use crate::common::{Server, Setup, agents};

const LIST: &str = "/.well-known/agents.json";

/// The ids of agents and skills, in the order of the list; those of skills follow their agent's.
fn ids(body: &str) -> Vec<&str> {
    body.split(r#"{"id":""#).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Changes one agent.
fn change(server: &Server, agent: &str, change: impl Fn(RegisteredAgent) -> RegisteredAgent) {
    let catalog = server.engine.catalog().load();
    let agents = catalog.agents(DEFAULT_TENANT).map(|registered| {
        let registered = RegisteredAgent::clone(registered);
        if registered.info().id == agent { change(registered) } else { registered }
    });
    server.engine.catalog().swap(Catalog::new("echo", agents));
}

#[tokio::test]
async fn agents_are_listed_with_their_public_skills() {
    let server = Server::open().await;
    let list = server.get(LIST).await;
    assert_eq!((list.status, list.header("content-type")), (200, Some("application/json")));
    assert!(list.body.starts_with(r#"{"defaultAgent":"echo","agents":[{"id":""#), "{}", list.body);
    for part in [
        r#""id":"echo","name":"Echo","description":"Gives back what it is given","url":"http://example.test/a2a/echo","#,
        r#""card":"http://example.test/a2a/echo/.well-known/agent-card.json","anonymous":true,"version":""#,
        r#""skillCount":1,"skills":[{"id":"echo","name":"Echo","description":"Gives back what it is given","tags":["demo"]}]"#,
    ] {
        assert!(list.body.contains(part), "{part} in {}", list.body);
    }
    // What only the extended card shows, and disabled agents.
    change(&server, "approver", |registered| agents::with_extended_skill(registered, "approver-auth"));
    let disabled = AgentSettings { enabled: false, ..AgentSettings::default() };
    change(&server, "currency", |registered| registered.with_settings(disabled.clone()));
    for path in [LIST.to_owned(), format!("{LIST}?q=login"), format!("{LIST}?q=convert+money")] {
        let body = server.get(&path).await.body;
        assert!(!body.contains("approver-auth") && !body.contains("a2a/currency"), "{path}: {body}");
    }
    assert!(server.get(&format!("{LIST}?q=approval")).await.body.contains(r#""skillCount":1,"#));
}

#[tokio::test]
async fn query_finds_skills_and_agents_best_first() {
    let server = Server::open().await;
    let find = async |query: &str| server.get(&format!("{LIST}?{query}")).await.body;
    assert_eq!(ids(&find("q=currency+exchange").await)[..2], ["currency", "currency"]);
    assert_eq!(ids(&find("q=ask+for+credentials").await)[..2], ["approver", "approver-auth"]);
    assert_eq!(ids(&find("q=login&limit=1").await), ["approver", "approver-auth"]);
    assert!(find("q=nothing-has-this").await.ends_with(r#""agents":[]}"#));
    // An empty query is none.
    assert_eq!(find("q=").await, server.get(LIST).await.body);
    let large = AgentInfo { description: "Weaves carpets".into(), ..echo(&server) };
    change(&server, "echo", |registered| RegisteredAgent::new(large.clone(), registered.skills().clone()));
    assert_eq!(ids(&find("q=carpet").await), ["echo"]);
}

fn echo(server: &Server) -> AgentInfo {
    server.engine.catalog().load().get(DEFAULT_TENANT, "echo").unwrap().info().clone()
}

#[tokio::test]
async fn agent_with_many_skills_is_listed_with_some_of_them() {
    let server = Server::open().await;
    change(&server, "echo", |registered| {
        let echo = registered.skills().find("echo").unwrap();
        let weaver = |number| AgentSkill {
            id: format!("weaver{number}"),
            description: "Weaves carpets".into(),
            ..echo.card.clone()
        };
        let skills = SkillSet::of_cards(echo.work.clone(), (0..1_000).map(weaver));
        RegisteredAgent::new(registered.info().clone(), skills)
    });
    for (query, expected) in
        [("", 20), ("?limit=3", 3), ("?limit=100", 100), ("?q=carpet", 20), ("?q=carpet&limit=7", 7)]
    {
        let body = server.get(&format!("{LIST}{query}")).await.body;
        assert!(body.contains(r#""skillCount":1000,"#), "{body}");
        let listed = ids(&body).iter().filter(|id| id.starts_with("weaver")).count();
        assert_eq!(listed, expected, "{query}");
    }
}

#[tokio::test]
async fn unusable_parameters_are_named() {
    let server = Server::open().await;
    let long = "x".repeat(1_001);
    for (query, field) in
        [("limit=0", "limit"), ("limit=101", "limit"), ("limit=x", "limit"), (&format!("q={long}"), "q")]
    {
        let refused = server.get(&format!("{LIST}?{query}")).await;
        assert_eq!(refused.status, 400, "{query}");
        assert!(refused.body.contains(&format!(r#""field":"{field}""#)), "{query}: {}", refused.body);
    }
}

#[tokio::test]
async fn list_is_cached_like_a_card() {
    let server =
        Setup::with(|options| options.public_url = Some("https://agents.example".into())).open().await;
    for path in [LIST.to_owned(), format!("{LIST}?q=echo")] {
        let list = server.get(&path).await;
        let etag = list.header("etag").unwrap();
        assert_eq!(list.header("cache-control"), Some("public, max-age=60"));
        assert_eq!(list.header("access-control-allow-origin"), Some("*"));
        let known = server.exchange(&format!("GET {path} HTTP/1.1\r\nif-none-match: {etag}"), "").await;
        assert_eq!((known.status, known.body.as_str()), (304, ""));
    }
    let before = server.get(LIST).await;
    let renamed = AgentInfo { name: "Parrot".into(), ..echo(&server) };
    change(&server, "echo", |registered| RegisteredAgent::new(renamed.clone(), registered.skills().clone()));
    let after = server.get(LIST).await;
    assert_ne!(after.header("etag"), before.header("etag"));
    assert!(after.body.contains("Parrot"), "{}", after.body);
    // Every origin may read it, like a card.
    let foreign = server.exchange(&format!("GET {LIST} HTTP/1.1\r\norigin: https://evil.test"), "").await;
    assert_eq!(foreign.status, 200);
}
