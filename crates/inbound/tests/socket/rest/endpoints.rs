//! The paths of the binding beside those of the others.

use a2ad_inbound::{AgentSettings, ExtendedCard, Profile};

use super::RestVersion;
use crate::common::{Server, Setup, member, request};

#[tokio::test]
async fn agents_are_served_at_their_own_path_and_the_default_at_the_root() {
    let server = Server::open().await;
    for version in RestVersion::BOTH {
        let sent = server.rest(version).done("POST", "/message:send", &version.send_body("hi", "")).await;
        let id = member(&sent, "id");
        let prefix = version.prefix();
        let mut places = vec!["", "/a2a", "/a2a/echo", "/a2a/%65cho"];
        if version == RestVersion::V1 {
            places.extend(["/default", "/a2a/echo/default"]);
        }
        for at in places {
            let answer = server.get(&format!("{at}{prefix}/tasks/{id}")).await;
            assert_eq!(answer.status, 200, "{at}: {}", answer.body);
            let head = format!("POST {at}{prefix}/message:send HTTP/1.1");
            let answer = server.exchange(&head, &version.send_body("hi", "")).await;
            assert_eq!(answer.status, 200, "{at}: {}", answer.body);
        }
        // Another agent does not find the task.
        assert_eq!(server.get(&format!("/a2a/currency{prefix}/tasks/{id}")).await.status, 404);
    }
}

#[tokio::test]
async fn jsonrpc_paths_stay_jsonrpc_for_post() {
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
            // With GET it is a task with that id.
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
async fn reserved_names_are_not_tenants() {
    let server = Server::open().await;
    for path in ["/healthz/tasks", "/mcp/tasks", "/api/tasks/x", "/_a2a/tasks"] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":"#), "{path}: {}", answer.body);
    }
    // What follows `run` is the name of a skill.
    for path in ["/run/message:send", "/a2a/echo/run/tasks"] {
        let answer = server.post(path, "{}").await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body.contains("this agent has no skill"), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn send_only_profile_accepts_sends() {
    let server = Setup::with(|options| {
        options.agents.insert(
            "echo".into(),
            AgentSettings { profile: Profile::pinkfish(), ..AgentSettings::default() },
        );
    });
    let server = server.open().await;
    for version in RestVersion::BOTH {
        let prefix = version.prefix();
        let head = format!("POST /a2a/echo{prefix}/message:send HTTP/1.1");
        let answer = server.exchange(&head, &version.send_body("hi", "")).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body.starts_with(r#"{"message":{"messageId":""#), "{}", answer.body);
        for path in ["/tasks", "/tasks/x"] {
            let answer = server.get(&format!("/a2a/echo{prefix}{path}")).await;
            assert_eq!(answer.status, 404, "{}", answer.body);
        }
        // The root has no profile.
        assert_eq!(server.get(&format!("{prefix}/tasks")).await.status, 200);
    }
}

#[tokio::test]
async fn extended_card_is_at_the_path_of_the_version() {
    let server = Setup::with(|options| {
        let settings = AgentSettings { extended_card: ExtendedCard::Open, ..AgentSettings::default() };
        options.agents.insert("echo".into(), settings);
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
async fn address_on_the_card_accepts_calls() {
    let server = Server::open().await;
    for path in ["/.well-known/agent-card.json", "/a2a/currency/.well-known/agent-card.json"] {
        let card = server.get(path).await.body;
        let interface = card.split(r#"{"url":""#).find(|part| part.contains(r#""HTTP+JSON""#)).unwrap();
        let base = interface.split('"').next().unwrap().strip_prefix("http://example.test").unwrap();
        assert_eq!(server.get(&format!("{base}/tasks")).await.status, 200, "{base}");
        assert_eq!(server.get(&format!("{base}/v1/tasks")).await.status, 200, "{base}");
    }
}
