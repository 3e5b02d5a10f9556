//! Who is let in: agents that are switched off, and agents that want a credential.

use a2ad_inbound::{AgentSettings, Profile};
use protocol::{
    ErrorKind,
    model::{ApiKeyLocation, SecurityScheme},
};

use crate::common::{
    Server, Setup, request,
    tongue::{Client, Tongue, Words},
};

async fn with(settings: AgentSettings) -> Server {
    let mut setup = Setup::default();
    setup.doors.agents.insert("approver".into(), settings);
    setup.open().await
}

fn bearer() -> SecurityScheme {
    SecurityScheme::HttpAuth { description: None, scheme: "Bearer".into(), bearer_format: Some("JWT".into()) }
}

fn key() -> SecurityScheme {
    SecurityScheme::ApiKey { description: None, location: ApiKeyLocation::Header, name: "X-Api-Key".into() }
}

fn closed(security: Vec<(String, SecurityScheme)>) -> AgentSettings {
    AgentSettings { anonymous: false, security, ..AgentSettings::default() }
}

#[tokio::test]
async fn an_agent_that_is_switched_off_is_not_there() {
    let server = with(AgentSettings { enabled: false, ..AgentSettings::default() }).await;
    for tongue in Tongue::ALL {
        let client = Client { server: &server, path: "/a2a/approver", tongue };
        client.check_refused(&client.say(Words::new("hi")).await, ErrorKind::AgentDisabled);
        client.check_refused(&client.try_cancel("x").await, ErrorKind::AgentDisabled);
        client.check_refused(&client.try_subscribe("x").await, ErrorKind::AgentDisabled);
    }
    for name in ["agent-card.json", "agent.json"] {
        let card = server.get(&format!("/a2a/approver/.well-known/{name}")).await;
        assert_eq!(card.status, 404, "{name}");
        let told = r#"{"code":-32011,"message":"Agent is not enabled","data":null}"#;
        assert!(card.body.contains(told), "{}", card.body);
        let head = format!("GET /a2a/approver/.well-known/{name} HTTP/1.1\r\na2a-version: 1.0");
        let card = server.exchange(&head, "").await;
        assert_eq!(card.status, 404, "{name}");
        assert!(card.body.contains(r#""reason":"AGENT_DISABLED""#), "{}", card.body);
    }
    // Its neighbours are.
    assert_eq!(server.get("/a2a/echo/.well-known/agent-card.json").await.status, 200);
    assert!(!server.get("/").await.body.contains("approver"));
}

#[tokio::test]
async fn a_default_agent_that_is_switched_off_is_nowhere() {
    let mut setup = Setup::default();
    setup.doors.agents.insert("echo".into(), AgentSettings { enabled: false, ..AgentSettings::default() });
    let server = setup.open().await;
    for path in ["/", "/a2a", "/_a2a/", "/_agent-native/a2a", "/a2a/rpc", "/tasks/send", "/a2a/echo"] {
        let client = Client { server: &server, path, tongue: Tongue::V1 };
        client.check_refused(&client.say(Words::new("hi")).await, ErrorKind::AgentDisabled);
    }
    assert_eq!(server.get("/.well-known/agent-card.json").await.status, 404);
}

#[tokio::test]
async fn an_agent_that_wants_a_credential_says_so_and_runs_nothing() {
    let schemes = vec![("jwtBearer".to_owned(), bearer()), ("ApiKey".to_owned(), key())];
    let server = with(closed(schemes)).await;
    for tongue in Tongue::ALL {
        let client = Client { server: &server, path: "/a2a/approver", tongue };
        for refused in [
            client.say(Words::new("hi")).await,
            client.try_cancel("x").await,
            client.try_subscribe("x").await,
        ] {
            client.check_refused(&refused, ErrorKind::Unauthenticated);
            let wanted = refused.header("www-authenticate").unwrap();
            assert!(wanted.to_lowercase().starts_with("bearer"), "{wanted}");
        }
    }
    // A credential that nobody can check is none.
    let head = "POST /a2a/approver HTTP/1.1\r\na2a-version: 1.0\r\nauthorization: Bearer x\r\nx-api-key: y";
    assert_eq!(server.exchange(head, &request("ListTasks", "{}")).await.status, 401);

    let card = async |version: &str| {
        let head =
            format!("GET /a2a/approver/.well-known/agent-card.json HTTP/1.1\r\na2a-version: {version}");
        let card = server.exchange(&head, "").await;
        assert_eq!(card.status, 200, "a card is public");
        card.body
    };
    let (v1, v03, draft) = (card("1.0").await, card("0.3").await, card("0.1").await);
    let old = r#""securitySchemes":{"jwtBearer":{"type":"http","scheme":"Bearer","bearerFormat":"JWT"},"ApiKey":{"type":"apiKey","in":"header","name":"X-Api-Key"}},"security":[{"jwtBearer":[]},{"ApiKey":[]}]"#;
    for (card, members) in [
        (
            &v1,
            [
                r#""jwtBearer":{"httpAuthSecurityScheme":{"scheme":"Bearer","bearerFormat":"JWT"}}"#,
                r#""ApiKey":{"apiKeySecurityScheme":{"location":"header","name":"X-Api-Key"}}"#,
                r#""securityRequirements":[{"schemes":{"jwtBearer":{}}},{"schemes":{"ApiKey":{}}}]"#,
            ],
        ),
        (&v03, [old, "", ""]),
        (&draft, [old, r#""authentication":{"schemes":["bearer","apiKey"]}"#, ""]),
    ] {
        for member in members {
            assert!(card.contains(member), "{member} in {card}");
        }
    }
    // Where a credential is welcome and nobody has to bring one, that is one of the alternatives.
    let schemes = vec![("ApiKey".to_owned(), key())];
    let welcome = with(AgentSettings { security: schemes, ..AgentSettings::default() }).await;
    let card = welcome.get("/a2a/approver/.well-known/agent-card.json").await.body;
    assert!(card.contains(r#""securityRequirements":[{"schemes":{"ApiKey":{}}},{}]"#), "{card}");
    assert!(card.contains(r#""security":[{"ApiKey":[]},{}]"#), "{card}");
    // An agent that is open asks for nothing.
    let open = server.get("/a2a/echo/.well-known/agent-card.json").await.body;
    assert!(!open.contains("securitySchemes") && !open.contains("securityRequirements"), "{open}");
}

#[tokio::test]
async fn the_challenge_names_a_scheme_the_agent_has() {
    let server = with(closed(vec![("ApiKey".to_owned(), key())])).await;
    let client = Client { server: &server, path: "/a2a/approver", tongue: Tongue::V1 };
    let refused = client.say(Words::new("hi")).await;
    let wanted = refused.header("www-authenticate").unwrap();
    assert!(!wanted.to_lowercase().starts_with("bearer"), "it takes no such thing: {wanted}");
    assert!(refused.body.contains(r#""challenge":"ApiKey name=\"X-Api-Key\"""#), "{}", refused.body);
    // Where the card names none, there is nothing to name.
    let server = with(closed(Vec::new())).await;
    let client = Client { server: &server, path: "/a2a/approver", tongue: Tongue::V1 };
    let refused = client.say(Words::new("hi")).await;
    assert!(!refused.body.contains("challenge"), "{}", refused.body);
}

/// The generation of a refusal is that of the question, also where only the method tells it.
#[tokio::test]
async fn whoever_is_not_let_in_is_told_in_its_own_generation() {
    let doors = [
        (
            AgentSettings { enabled: false, ..AgentSettings::default() },
            404,
            -32011,
            "Agent is not enabled",
            "AGENT_DISABLED",
        ),
        (closed(vec![("b".into(), bearer())]), 401, -32010, "Authentication required", "UNAUTHENTICATED"),
    ];
    for (settings, status, code, text, reason) in doors {
        let server = with(settings).await;
        for tongue in Tongue::ALL {
            let method = tongue.method(protocol::OperationKind::SendMessage);
            let body = request(method, &tongue.said(Words::new("hi")));
            let answer = server.post("/a2a/approver", &body).await;
            let label = format!("{};profile=neutral", tongue.name());
            assert_eq!(
                (answer.status, answer.header("a2ad-dialect")),
                (status, Some(label.as_str())),
                "{method}"
            );
            let expected = match tongue {
                Tongue::Draft => format!(r#"{{"code":{code},"message":"{text}","data":null}}"#),
                Tongue::V03 => format!(r#"{{"code":{code},"message":"{text}"}}"#),
                Tongue::V1 => format!(r#""reason":"{reason}""#),
            };
            assert!(answer.body.contains(&expected), "{method}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_stranger_is_refused_as_each_house_does() {
    let houses = [
        (Profile::neutral(), 401, -32010),
        (Profile::fold(), 401, -32010),
        (Profile::agentos(), 401, -32010),
        (Profile::agent_native(), 401, -32001),
        (Profile::pinkfish(), 403, -32010),
    ];
    for (profile, status, code) in houses {
        let name = profile.name;
        let server = with(AgentSettings { profile, ..closed(vec![("b".into(), bearer())]) }).await;
        for tongue in [Tongue::Draft, Tongue::V03] {
            let client = Client { server: &server, path: "/a2a/approver", tongue };
            let answer = client.say(Words::new("hi")).await;
            assert_eq!(answer.status, status, "{name}");
            let expected = format!(r#""error":{{"code":{code},"message":"Authentication required""#);
            assert!(answer.body.contains(&expected), "{name}: {}", answer.body);
            assert_eq!(answer.header("www-authenticate").is_some(), status == 401, "{name}");
        }
        let client = Client { server: &server, path: "/a2a/approver", tongue: Tongue::V1 };
        let answer = client.say(Words::new("hi")).await;
        assert_eq!(answer.status, status, "{name}");
        let told = answer.body.contains(r#""code":-32000"#) && answer.body.contains("UNAUTHENTICATED");
        assert!(told, "{name}: {}", answer.body);
    }
}
