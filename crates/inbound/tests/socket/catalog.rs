//! The catalog is swapped while the server runs.

use std::time::Duration;

use a2ad_inbound::AgentSettings;
use engine::{Catalog, DEFAULT_TENANT, RegisteredAgent};
use protocol::{ErrorKind, Timestamp};

use crate::common::{
    Server,
    generation::{Client, Generation, UserMessage},
    request,
};

const CARD: &str = "/.well-known/agent-card.json";

/// Swaps in a catalog with one agent changed.
fn change(server: &Server, agent: &str, change: impl Fn(RegisteredAgent) -> RegisteredAgent) {
    let catalog = server.engine.catalog().load();
    let agents = catalog.agents(DEFAULT_TENANT).map(|registered| {
        let registered = RegisteredAgent::clone(registered);
        if registered.info().id == agent { change(registered) } else { registered }
    });
    server.engine.catalog().swap(Catalog::new("echo", agents));
}

fn set_enabled(server: &Server, agent: &str, enabled: bool) {
    let settings = AgentSettings { enabled, ..AgentSettings::default() };
    change(server, agent, |registered| registered.with_settings(settings.clone()));
}

/// How many card documents of an agent are kept.
fn kept_cards(server: &Server, agent: &str) -> usize {
    server.engine.catalog().load().get(DEFAULT_TENANT, agent).unwrap().cards().len()
}

#[tokio::test]
async fn disabled_agent_is_refused_until_it_is_enabled_again() {
    let server = Server::open().await;
    for (agent, path) in [("approver", "/a2a/approver"), ("echo", "/")] {
        let card = format!("{}{CARD}", path.trim_end_matches('/'));
        let page_lists_it = async || server.get("/").await.body.contains(&format!("/a2a/{agent}\""));
        for _ in 0..2 {
            assert_eq!(server.get(&card).await.status, 200);
            assert!(page_lists_it().await);
            set_enabled(&server, agent, false);
            for generation in Generation::ALL {
                let client = Client { server: &server, path, generation };
                client.check_error(&client.try_send(UserMessage::new("hi")).await, ErrorKind::AgentDisabled);
            }
            assert_eq!(server.get(&card).await.status, 404);
            assert!(!page_lists_it().await);
            set_enabled(&server, agent, true);
            let client = Client { server: &server, path, generation: Generation::V1 };
            let answer = client.try_send(UserMessage::new("hi")).await;
            assert!(answer.body.contains(r#""result""#), "{}", answer.body);
        }
    }
}

/// The checks and the run use the same catalog: an agent that is added while the body arrives is not called.
#[tokio::test]
async fn agent_that_is_added_during_a_request_is_not_called_by_it() {
    let server = Server::open().await;
    let all = server.engine.catalog().load();
    server.engine.catalog().swap(Catalog::new("echo", []));
    let params = Generation::V1.send_params(UserMessage::new("hi"));
    let body = request("SendMessage", &params);
    let mut wire = server.connect().await;
    let head = format!(
        "POST /a2a/echo HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    wire.write(head.as_bytes()).await;
    wire.write(&body.as_bytes()[..1]).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let agents = all.agents(DEFAULT_TENANT).map(|registered| RegisteredAgent::clone(registered));
    server.engine.catalog().swap(Catalog::new("echo", agents));
    wire.write(&body.as_bytes()[1..]).await;
    let answer = wire.answer().await;
    assert!(answer.body.contains(r#""reason":"AGENT_DISABLED""#), "{}", answer.body);
    let answer = server.post_v1("/a2a/echo", &request("ListTasks", "{}")).await;
    assert!(answer.body.contains(r#""totalSize":0"#), "{}", answer.body);
}

#[tokio::test]
async fn removed_agent_is_unknown() {
    let server = Server::open().await;
    server.engine.catalog().swap(Catalog::new("echo", []));
    for path in ["/", "/a2a/echo"] {
        let client = Client { server: &server, path, generation: Generation::V1 };
        client.check_error(&client.try_send(UserMessage::new("hi")).await, ErrorKind::AgentDisabled);
    }
    for path in [CARD.to_owned(), format!("/a2a/echo{CARD}")] {
        assert_eq!(server.get(&path).await.status, 404);
    }
}

#[tokio::test]
async fn default_agent_follows_the_catalog() {
    let server = Server::open().await;
    let catalog = server.engine.catalog().load();
    let agents: Vec<_> = catalog.agents(DEFAULT_TENANT).map(|agent| RegisteredAgent::clone(agent)).collect();
    assert!(server.get(CARD).await.body.contains(r#""name":"Echo""#));
    server.engine.catalog().swap(Catalog::new("approver", agents));
    let card = server.get(CARD).await;
    assert!(card.body.contains(r#""name":"Approver""#), "{}", card.body);
    assert!(server.get("/").await.body.contains(r#""defaultAgent":"approver""#));
}

#[tokio::test]
async fn card_is_built_once_for_each_form_and_address() {
    let server = Server::open().await;
    let card = server.get(CARD).await;
    assert_eq!(kept_cards(&server, "echo"), 1);
    let again = server.get(CARD).await;
    assert_eq!((&again.body, again.header("etag")), (&card.body, card.header("etag")));
    assert_eq!(kept_cards(&server, "echo"), 1);
    for version in ["1.0", "0.3", "0.1"] {
        let head = format!("GET {CARD} HTTP/1.1\r\na2a-version: {version}");
        let named = server.exchange(&head, "").await;
        assert_eq!(named.status, 200);
        assert_ne!(named.header("etag"), card.header("etag"));
        assert_eq!(server.exchange(&head, "").await.body, named.body);
    }
    assert_eq!(kept_cards(&server, "echo"), 4);
    // `agent.json` is the card of the draft.
    assert_eq!(server.get("/.well-known/agent.json").await.status, 200);
    assert_eq!(kept_cards(&server, "echo"), 4);
    assert_ne!(server.get(&format!("/a2a/echo{CARD}")).await.body, card.body);
    assert_eq!((kept_cards(&server, "echo"), kept_cards(&server, "approver")), (5, 0));
}

#[tokio::test]
async fn hosts_cannot_fill_the_memory_with_cards() {
    let server = Server::open().await;
    let mut wire = server.connect().await;
    for port in 1..=1_000 {
        wire.send(&format!("GET {CARD} HTTP/1.1\r\nhost: localhost:{port}"), "").await;
        let card = wire.answer().await;
        assert!(card.body.contains(&format!("http://localhost:{port}/")), "{}", card.body);
        assert!(kept_cards(&server, "echo") <= 64);
    }
}

#[tokio::test]
async fn card_of_the_new_catalog_is_served_at_once() {
    let server = Server::open().await;
    let before = server.get(CARD).await;
    let clock = server.engine.clock();
    let later = clock.now().as_millis() + 60_000;
    clock.advance(Duration::from_secs(60));
    let settings = AgentSettings { streaming: false, ..AgentSettings::default() };
    change(&server, "echo", |registered| registered.with_settings(settings.clone()));
    let head = format!("GET {CARD} HTTP/1.1\r\nif-none-match: {}", before.header("etag").unwrap());
    let after = server.exchange(&head, "").await;
    assert_eq!(after.status, 200);
    assert!(after.body.contains(r#""streaming":false"#), "{}", after.body);
    assert_ne!(after.header("etag"), before.header("etag"));
    assert_eq!(after.header("last-modified"), Some(Timestamp::from_millis(later).http_date().as_str()));
    assert_ne!(after.header("last-modified"), before.header("last-modified"));
}
