//! Access control: disabled agents, and agents that require a credential.

use a2ad_inbound::{AgentSettings, AuthMethods, Profile};
use protocol::{
    ErrorKind,
    model::{ApiKeyLocation, SecurityScheme},
};

use crate::common::{
    Server, Setup,
    generation::{Client, Generation, UserMessage},
    request, send_params,
};

async fn with(settings: AgentSettings) -> Server {
    let mut setup = Setup::default();
    setup.options.agents.insert("approver".into(), settings);
    setup.open().await
}

fn bearer() -> SecurityScheme {
    SecurityScheme::HttpAuth { description: None, scheme: "Bearer".into(), bearer_format: Some("JWT".into()) }
}

fn key() -> SecurityScheme {
    SecurityScheme::ApiKey { description: None, location: ApiKeyLocation::Header, name: "X-Api-Key".into() }
}

fn closed(security: Vec<(String, SecurityScheme)>) -> AgentSettings {
    AgentSettings { auth: AuthMethods::NONE, security, ..AgentSettings::default() }
}

#[tokio::test]
async fn disabled_agent_is_not_served() {
    let server = with(AgentSettings { enabled: false, ..AgentSettings::default() }).await;
    for generation in Generation::ALL {
        let client = Client { server: &server, path: "/a2a/approver", generation };
        client.check_error(&client.try_send(UserMessage::new("hi")).await, ErrorKind::AgentDisabled);
        client.check_error(&client.try_cancel("x").await, ErrorKind::AgentDisabled);
        client.check_error(&client.try_subscribe("x").await, ErrorKind::AgentDisabled);
    }
    for name in ["agent-card.json", "agent.json"] {
        let card = server.get(&format!("/a2a/approver/.well-known/{name}")).await;
        assert_eq!(card.status, 404, "{name}");
        let expected = r#"{"code":-32011,"message":"Agent is not enabled","data":null}"#;
        assert!(card.body.contains(expected), "{}", card.body);
        let head = format!("GET /a2a/approver/.well-known/{name} HTTP/1.1\r\na2a-version: 1.0");
        let card = server.exchange(&head, "").await;
        assert_eq!(card.status, 404, "{name}");
        assert!(card.body.contains(r#""reason":"AGENT_DISABLED""#), "{}", card.body);
    }
    // The errors are those of an agent that does not exist.
    let same = async |call: &dyn Fn(&str) -> (String, String)| {
        let mut answers = Vec::new();
        for agent in ["approver", "nobody"] {
            let (head, body) = call(agent);
            let answer = server.exchange(&head, &body).await;
            answers.push((answer.status, answer.body.replace(agent, "AGENT")));
        }
        assert_eq!(answers[0], answers[1]);
    };
    let send = || request("SendMessage", &send_params("hi", ""));
    same(&|agent| (format!("POST /a2a/{agent} HTTP/1.1\r\na2a-version: 1.0"), send())).await;
    same(&|agent| (format!("GET /a2a/{agent}/tasks HTTP/1.1"), String::new())).await;
    same(&|agent| {
        (format!("POST /a2a/{agent}/run/approver HTTP/1.1\r\ncontent-type: text/plain"), "hi".into())
    })
    .await;
    same(&|agent| (format!("POST /a2a/{agent} HTTP/1.1\r\ncontent-type: text/plain"), "hi".into())).await;
    same(&|agent| (format!("GET /a2a/{agent}/openapi.json HTTP/1.1"), String::new())).await;
    // Other agents are not affected.
    assert_eq!(server.get("/a2a/echo/.well-known/agent-card.json").await.status, 200);
    assert!(!server.get("/").await.body.contains("approver"));
}

#[tokio::test]
async fn disabled_default_agent_is_not_served_at_any_path() {
    let mut setup = Setup::default();
    setup.options.agents.insert("echo".into(), AgentSettings { enabled: false, ..AgentSettings::default() });
    let server = setup.open().await;
    for path in ["/", "/a2a", "/_a2a/", "/_agent-native/a2a", "/a2a/rpc", "/tasks/send", "/a2a/echo"] {
        let client = Client { server: &server, path, generation: Generation::V1 };
        client.check_error(&client.try_send(UserMessage::new("hi")).await, ErrorKind::AgentDisabled);
    }
    assert_eq!(server.get("/.well-known/agent-card.json").await.status, 404);
    for path in ["/", "/.well-known/agents.json"] {
        let list = server.get(path).await.body;
        assert!(list.contains(r#""agents":["#) && !list.contains("defaultAgent"), "{path}: {list}");
    }
}

#[tokio::test]
async fn agent_that_requires_credential_rejects_calls() {
    let schemes = vec![("jwtBearer".to_owned(), bearer()), ("ApiKey".to_owned(), key())];
    let server = with(closed(schemes)).await;
    for generation in Generation::ALL {
        let client = Client { server: &server, path: "/a2a/approver", generation };
        for refused in [
            client.try_send(UserMessage::new("hi")).await,
            client.try_cancel("x").await,
            client.try_subscribe("x").await,
        ] {
            client.check_error(&refused, ErrorKind::Unauthenticated);
            let wanted = refused.header("www-authenticate").unwrap();
            assert!(wanted.to_lowercase().starts_with("bearer"), "{wanted}");
        }
    }
    // A credential that the server cannot check is not accepted.
    let head = "POST /a2a/approver HTTP/1.1\r\na2a-version: 1.0\r\nauthorization: Bearer x\r\nx-api-key: y";
    assert_eq!(server.exchange(head, &request("ListTasks", "{}")).await.status, 401);
}

#[tokio::test]
async fn challenge_names_the_agents_security_scheme() {
    let server = with(closed(vec![("ApiKey".to_owned(), key())])).await;
    let client = Client { server: &server, path: "/a2a/approver", generation: Generation::V1 };
    let refused = client.try_send(UserMessage::new("hi")).await;
    let wanted = refused.header("www-authenticate").unwrap();
    assert!(!wanted.to_lowercase().starts_with("bearer"), "not a scheme of the agent: {wanted}");
    assert!(refused.body.contains(r#""challenge":"ApiKey name=\"X-Api-Key\"""#), "{}", refused.body);
    // Without security schemes there is no challenge in the error.
    let server = with(closed(Vec::new())).await;
    let client = Client { server: &server, path: "/a2a/approver", generation: Generation::V1 };
    let refused = client.try_send(UserMessage::new("hi")).await;
    assert!(!refused.body.contains("challenge"), "{}", refused.body);
}

/// An error is in the generation of the request, also if only the method determines it. The exception is a missing
/// credential: it is reported before the body is read, so only the header determines the generation.
#[tokio::test]
async fn access_errors_are_in_the_generation_of_the_request() {
    let cases = [
        (
            AgentSettings { enabled: false, ..AgentSettings::default() },
            false,
            404,
            -32011,
            "Agent is not enabled",
            "AGENT_DISABLED",
        ),
        (
            closed(vec![("b".into(), bearer())]),
            true,
            401,
            -32010,
            "Authentication required",
            "UNAUTHENTICATED",
        ),
    ];
    for (settings, names_version, status, code, text, reason) in cases {
        let server = with(settings).await;
        for generation in Generation::ALL {
            let method = generation.method(protocol::OperationKind::SendMessage);
            let body = request(method, &generation.send_params(UserMessage::new("hi")));
            let version = if names_version { generation.version() } else { "" };
            let head = format!("POST /a2a/approver HTTP/1.1\r\na2a-version: {version}");
            let answer = server.exchange(&head, &body).await;
            let label = format!("{};profile=neutral", generation.name());
            assert_eq!(
                (answer.status, answer.header("a2ad-dialect")),
                (status, Some(label.as_str())),
                "{method}"
            );
            let expected = match generation {
                Generation::Draft => format!(r#"{{"code":{code},"message":"{text}","data":null}}"#),
                Generation::V03 => format!(r#"{{"code":{code},"message":"{text}"}}"#),
                Generation::V1 => format!(r#""reason":"{reason}""#),
            };
            assert!(answer.body.contains(&expected), "{method}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn missing_credential_is_reported_in_the_form_of_the_profile() {
    let cases = [
        (Profile::neutral(), 401, -32010),
        (Profile::fold(), 401, -32010),
        (Profile::agentos(), 401, -32010),
        (Profile::agent_native(), 401, -32001),
        (Profile::pinkfish(), 403, -32010),
    ];
    for (profile, status, code) in cases {
        let name = profile.name;
        let server = with(AgentSettings { profile, ..closed(vec![("b".into(), bearer())]) }).await;
        for generation in [Generation::Draft, Generation::V03] {
            let client = Client { server: &server, path: "/a2a/approver", generation };
            let answer = client.try_send(UserMessage::new("hi")).await;
            assert_eq!(answer.status, status, "{name}");
            let expected = format!(r#""error":{{"code":{code},"message":"Authentication required""#);
            assert!(answer.body.contains(&expected), "{name}: {}", answer.body);
            assert_eq!(answer.header("www-authenticate").is_some(), status == 401, "{name}");
        }
        let client = Client { server: &server, path: "/a2a/approver", generation: Generation::V1 };
        let answer = client.try_send(UserMessage::new("hi")).await;
        assert_eq!(answer.status, status, "{name}");
        let is_standard = answer.body.contains(r#""code":-32000"#) && answer.body.contains("UNAUTHENTICATED");
        assert!(is_standard, "{name}: {}", answer.body);
    }
}
