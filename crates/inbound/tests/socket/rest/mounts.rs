//! Where the binding is found, beside everything else.

use a2ad_inbound::{AgentSettings, ExtendedCard, Profile};

use super::Generation;
use crate::common::{Server, Setup, member, request};

#[tokio::test]
async fn an_agent_is_at_its_own_path_and_the_default_one_at_the_root() {
    let server = Server::open().await;
    for generation in Generation::BOTH {
        let sent = server.rest(generation).done("POST", "/message:send", &generation.said("hi", "")).await;
        let id = member(&sent, "id");
        let prefix = generation.prefix();
        let mut places = vec!["", "/a2a", "/a2a/echo", "/a2a/%65cho"];
        if generation == Generation::V1 {
            places.extend(["/default", "/a2a/echo/default"]);
        }
        for at in places {
            let answer = server.get(&format!("{at}{prefix}/tasks/{id}")).await;
            assert_eq!(answer.status, 200, "{at}: {}", answer.body);
            let head = format!("POST {at}{prefix}/message:send HTTP/1.1");
            let answer = server.exchange(&head, &generation.said("hi", "")).await;
            assert_eq!(answer.status, 200, "{at}: {}", answer.body);
        }
        // Another agent does not know it.
        assert_eq!(server.get(&format!("/a2a/currency{prefix}/tasks/{id}")).await.status, 404);
    }
}

#[tokio::test]
async fn paths_that_were_json_rpc_stay_it_for_its_verb() {
    let server = Server::open().await;
    for at in ["/tasks", "/a2a/tasks"] {
        for method in ["send", "sendSubscribe", "get", "cancel"] {
            let path = format!("{at}/{method}");
            let body = request(&format!("tasks/{method}"), r#"{"id":"x"}"#);
            let answer = server.post(&path, &body).await;
            assert!(
                answer.body.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-3"#),
                "{}",
                answer.body
            );
            // For its own verb it is a task of that name.
            let answer = server.get(&path).await;
            assert_eq!((answer.status, answer.header("allow")), (404, None), "{path}: {}", answer.body);
            assert!(
                answer.body.contains(&format!(r#""message":"task not found: {method}""#)),
                "{}",
                answer.body
            );
        }
        for path in ["", "/", "/list", "/resubscribe"].map(|path| format!("{at}{path}")) {
            let answer = server.post(&path, &request("ListTasks", "{}")).await;
            assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{path}");
        }
    }
}

#[tokio::test]
async fn what_belongs_to_others_is_no_tenant() {
    let server = Server::open().await;
    for path in [
        "/healthz/tasks",
        "/run/message:send",
        "/mcp/tasks",
        "/api/tasks/x",
        "/_a2a/tasks",
        "/a2a/echo/run/tasks",
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":"#), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_house_that_only_takes_sends_takes_them_here() {
    let server = Setup::with(|doors| {
        doors.agents.insert(
            "echo".into(),
            AgentSettings { profile: Profile::pinkfish(), ..AgentSettings::default() },
        );
    });
    let server = server.open().await;
    for generation in Generation::BOTH {
        let prefix = generation.prefix();
        let head = format!("POST /a2a/echo{prefix}/message:send HTTP/1.1");
        let answer = server.exchange(&head, &generation.said("hi", "")).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body.starts_with(r#"{"message":{"messageId":""#), "{}", answer.body);
        for path in ["/tasks", "/tasks/x"] {
            let answer = server.get(&format!("/a2a/echo{prefix}{path}")).await;
            assert_eq!(answer.status, 404, "{}", answer.body);
        }
        // At the root there is no house.
        assert_eq!(server.get(&format!("{prefix}/tasks")).await.status, 200);
    }
}

#[tokio::test]
async fn the_extended_card_is_where_the_generation_has_it() {
    let server = Setup::with(|doors| {
        let settings = AgentSettings { extended_card: ExtendedCard::Open, ..AgentSettings::default() };
        doors.agents.insert("echo".into(), settings);
    });
    let server = server.open().await;
    for at in ["", "/a2a/echo"] {
        let card = server.get(&format!("{at}/extendedAgentCard")).await;
        assert_eq!((card.status, card.header("content-type")), (200, Some("application/a2a+json")));
        assert!(card.body.contains(r#""supportedInterfaces":["#), "{}", card.body);
        let rest = format!(
            r#"{{"url":"http://example.test{at}","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}}"#
        );
        assert!(card.body.contains(&rest), "{}", card.body);
        let card = server.get(&format!("{at}/v1/card")).await;
        assert_eq!((card.status, card.header("content-type")), (200, Some("application/json")));
        assert!(card.body.contains(r#""protocolVersion":"0.3.0""#), "{}", card.body);
        let rest = format!(r#"{{"url":"http://example.test{at}","transport":"HTTP+JSON"}}"#);
        assert!(card.body.contains(&rest), "{}", card.body);
    }
}

#[tokio::test]
async fn the_address_on_the_card_takes_calls() {
    let server = Server::open().await;
    for path in ["/.well-known/agent-card.json", "/a2a/currency/.well-known/agent-card.json"] {
        let card = server.get(path).await.body;
        let interface = card.split(r#"{"url":""#).find(|part| part.contains(r#""HTTP+JSON""#)).unwrap();
        let base = interface.split('"').next().unwrap().strip_prefix("http://example.test").unwrap();
        assert_eq!(server.get(&format!("{base}/tasks")).await.status, 200, "{base}");
        assert_eq!(server.get(&format!("{base}/v1/tasks")).await.status, 200, "{base}");
    }
}
