//! What agents declare about credentials: on their cards in every dialect and binding, in the OpenAPI document, and in
//! the challenges of refused calls.

#![allow(clippy::disallowed_types, reason = "documents are compared as JSON values")]

use a2ad_inbound::{
    AgentSettings, AuthMethod, AuthMethods, EndUser, ExtendedCard, Issuer, Profile, security_schemes,
};
use protocol::{
    AgentCard, ErrorKind, GetExtendedCard, Operation, Reply,
    grpc::Service,
    model::{Secret, SecurityRequirement, SecurityScheme},
};
use serde_json::{Value, json};

use crate::common::{Server, Setup, channel::Channel, request, send_params};

const TOKEN: &str = "static-token-of-the-server";

fn issuers() -> Vec<Issuer> {
    let issuer = |url: &str| Issuer { issuer: url.into(), audience: "a2ad".into(), jwks_uri: None };
    vec![issuer("https://id.example"), issuer("http://127.0.0.1:9/realm/")]
}

/// Settings of an agent that accepts these methods.
fn accepting(methods: &[AuthMethod], end_user: EndUser) -> AgentSettings {
    AgentSettings {
        auth: methods.iter().copied().collect(),
        end_user,
        security: security_schemes(methods.iter().copied(), &issuers()),
        extended_card: ExtendedCard::Open,
        ..AgentSettings::default()
    }
}

/// What production without authentication declares.
fn unconfigured() -> AgentSettings {
    AgentSettings { auth: AuthMethods::UNCONFIGURED, ..accepting(&[AuthMethod::Jwt], EndUser::Off) }
}

/// A server whose default agent has these settings, and which knows a static token.
fn setup(settings: AgentSettings) -> Setup {
    Setup::with(|options| {
        options.agents.insert("echo".into(), settings);
        options.auth.bearer = Some(Secret::new(TOKEN));
    })
}

async fn card(server: &Server, name: &str, version: &str) -> Value {
    let head = format!("GET /.well-known/{name} HTTP/1.1\r\na2a-version: {version}");
    let answer = server.exchange(&head, "").await;
    assert_eq!(answer.status, 200, "a card is public: {}", answer.body);
    answer.body.parse().unwrap()
}

/// The card over gRPC, for a caller that the application has identified.
async fn grpc_card(server: &Server, service: Service) -> AgentCard {
    let channel = Channel::open(server).await;
    let operation = Operation::GetExtendedCard(GetExtendedCard::default());
    let outcome = channel.call(service, &operation, &[("test-caller", "alice")]).await;
    match outcome.reply(service, &operation) {
        Reply::Card(card) => *card,
        other => panic!("{other:?} is no card"),
    }
}

/// One row of what agents declare.
struct Row {
    settings: AgentSettings,
    /// `securitySchemes` of 0.3 and of the OpenAPI document.
    schemes: Value,
    /// The alternatives: names of schemes.
    alternatives: &'static [&'static [&'static str]],
    /// `authentication.schemes` of the draft.
    draft: &'static [&'static str],
}

fn rows() -> Vec<Row> {
    use AuthMethod::{Anonymous, ApiKey, Bearer, Jwt, Oidc};
    let key = json!({"type": "apiKey", "in": "header", "name": "X-Api-Key"});
    let end_user = json!({"type": "apiKey", "in": "header", "name": "X-End-User-Token"});
    let jwt = json!({"type": "http", "scheme": "Bearer", "bearerFormat": "JWT"});
    let token = json!({"type": "http", "scheme": "Bearer"});
    let issuer = |url: &str| json!({"type": "openIdConnect", "openIdConnectUrl": format!("{url}/.well-known/openid-configuration")});
    let (first, second) = (issuer("https://id.example"), issuer("http://127.0.0.1:9/realm"));
    let row = |methods: &[AuthMethod], end_user, schemes, alternatives, draft| Row {
        settings: accepting(methods, end_user),
        schemes,
        alternatives,
        draft,
    };
    vec![
        row(&[Anonymous], EndUser::Off, Value::Null, &[], &[]),
        row(&[ApiKey], EndUser::Off, json!({"ApiKey": key}), &[&["ApiKey"]], &["apiKey"]),
        row(&[Jwt], EndUser::Off, json!({"jwtBearer": jwt}), &[&["jwtBearer"]], &["bearer"]),
        row(
            &[Oidc],
            EndUser::Off,
            json!({"oidc": first, "oidc2": second}),
            &[&["oidc"], &["oidc2"]],
            &["openIdConnect"],
        ),
        row(&[Bearer], EndUser::Off, json!({"apiKey": token}), &[&["apiKey"]], &["bearer"]),
        row(
            &[Anonymous, ApiKey, Jwt],
            EndUser::Off,
            json!({"ApiKey": key, "jwtBearer": jwt}),
            &[&["ApiKey"], &["jwtBearer"], &[]],
            &["apiKey", "bearer"],
        ),
        row(
            &[Jwt, Bearer],
            EndUser::Required,
            json!({"jwtBearer": jwt, "apiKey": token, "endUser": end_user}),
            &[&["jwtBearer", "endUser"], &["apiKey", "endUser"]],
            &["bearer", "apiKey"],
        ),
        row(&[Anonymous], EndUser::Required, json!({"endUser": end_user}), &[&["endUser"]], &["apiKey"]),
        Row {
            settings: unconfigured(),
            schemes: json!({"jwtBearer": jwt}),
            alternatives: &[&["jwtBearer"]],
            draft: &["bearer"],
        },
    ]
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// The names of the schemes in each alternative of a card.
fn alternatives(requirements: &[SecurityRequirement]) -> Vec<Vec<String>> {
    let names = |requirement: &SecurityRequirement| {
        sorted(requirement.schemes.iter().map(|(name, _)| name.clone()).collect())
    };
    requirements.iter().map(names).collect()
}

#[tokio::test]
async fn cards_of_every_dialect_declare_what_the_agent_accepts() {
    for Row { settings, schemes, alternatives: expected, draft } in rows() {
        let auth = format!("{:?} {:?}", settings.auth, settings.end_user);
        let declared = settings.clone();
        let server = setup(settings).open().await;
        let security: Value = match expected {
            [] => Value::Null,
            some => some
                .iter()
                .map(|names| names.iter().map(|name| ((*name).to_owned(), json!([]))).collect::<Value>())
                .collect(),
        };
        let requirements: Value = match expected {
            [] => Value::Null,
            some => some
                .iter()
                .map(|names| {
                    let names: serde_json::Map<_, _> =
                        names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
                    if names.is_empty() { json!({}) } else { json!({ "schemes": names }) }
                })
                .collect(),
        };
        let v03 = card(&server, "agent-card.json", "0.3").await;
        assert_eq!((&v03["securitySchemes"], &v03["security"]), (&schemes, &security), "{auth}");
        let old = card(&server, "agent.json", "").await;
        assert_eq!((&old["securitySchemes"], &old["security"]), (&schemes, &security), "{auth}");
        assert_eq!(old["authentication"]["schemes"], json!(draft), "{auth}");
        let v1 = card(&server, "agent-card.json", "1.0").await;
        assert_eq!(v1["securityRequirements"], requirements, "{auth}");
        let names = |value: &Value| value.as_object().map(|map| sorted(map.keys().cloned().collect()));
        assert_eq!(names(&v1["securitySchemes"]), names(&schemes), "{auth}");
        // One document for both has both.
        let merged = card(&server, "agent-card.json", "").await;
        assert_eq!(
            (&merged["security"], &merged["securityRequirements"]),
            (&security, &requirements),
            "{auth}"
        );
        let document: Value = server.get("/openapi.json").await.body.parse().unwrap();
        assert_eq!(document["components"]["securitySchemes"], schemes, "{auth}");
        assert_eq!(document["security"], security, "{auth}");

        if declared.auth.is_unconfigured() || declared.end_user == EndUser::Required {
            continue;
        }
        // Over gRPC the card is the result of a call, for which the application has identified the caller.
        let mut setup = setup(declared.clone());
        setup.options.allowed_hosts = Vec::new();
        let grpc = setup.open_with_callers().await;
        for service in Service::ALL {
            let card = grpc_card(&grpc, service).await;
            let sorted_names: Vec<Vec<String>> = expected
                .iter()
                .map(|names| sorted(names.iter().map(|name| (*name).to_owned()).collect()))
                .collect();
            assert_eq!(alternatives(&card.security_requirements), sorted_names, "{auth} {service:?}");
            let found = |name: &str| card.security_schemes.iter().find(|(own, _)| own == name);
            for (name, scheme) in &declared.security {
                assert_eq!(found(name).map(|(_, scheme)| scheme), Some(scheme), "{auth} {service:?}");
            }
            assert_eq!(card.security_schemes.len(), declared.security.len(), "{auth} {service:?}");
        }
    }
}

#[tokio::test]
async fn grpc_card_requires_the_end_user_too() {
    let settings = accepting(&[AuthMethod::Bearer], EndUser::Required);
    let mut setup = setup(AgentSettings { end_user: EndUser::Off, ..settings.clone() });
    setup.options.agents.insert("currency".into(), settings);
    let server = setup.open().await;
    // The card of the default agent, with the static token.
    let channel = Channel::open(&server).await;
    let operation = Operation::GetExtendedCard(GetExtendedCard::default());
    let authorization = format!("Bearer {TOKEN}");
    let metadata = [("authorization", authorization.as_str())];
    let Reply::Card(card) =
        channel.call(Service::V1, &operation, &metadata).await.reply(Service::V1, &operation)
    else {
        panic!("no card")
    };
    assert_eq!(alternatives(&card.security_requirements), [["apiKey"]]);
    let named = [("authorization", authorization.as_str()), ("a2a-agent", "currency")];
    let refused = channel.call(Service::V1, &operation, &named).await.status;
    let error = refused.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Unauthenticated);
    assert!(error.message.contains("X-End-User-Token"), "{}", error.message);
}

#[tokio::test]
async fn profile_fold_declares_nothing_and_requires_the_same() {
    let settings =
        AgentSettings { profile: Profile::fold(), ..accepting(&[AuthMethod::ApiKey], EndUser::Off) };
    let server = setup(settings).open().await;
    for (name, version) in [("agent.json", ""), ("agent-card.json", "0.3")] {
        let card = card(&server, name, version).await;
        assert!(card.get("securitySchemes").is_none() && card.get("authentication").is_none(), "{card}");
    }
    let refused = server.post("/a2a/echo", &request("message/send", &send_params("hi", ""))).await;
    assert_eq!(
        (refused.status, refused.header("www-authenticate")),
        (401, Some(r#"ApiKey name="X-Api-Key""#))
    );
}

#[tokio::test]
async fn challenge_names_every_scheme_and_marks_an_invalid_token() {
    use AuthMethod::{ApiKey, Bearer, Jwt};
    const KEY: &str = r#"ApiKey name="X-Api-Key""#;
    const INVALID: &str = r#"Bearer error="invalid_token""#;
    let both = format!("{INVALID}, {KEY}");
    let send = request("SendMessage", &send_params("hi", ""));
    for (methods, headers, expected) in [
        (&[Jwt][..], "", "Bearer"),
        (&[Jwt], "\r\nauthorization: Bearer x", INVALID),
        (&[Jwt], "\r\nauthorization: Bearer a.b.c", INVALID),
        (&[Jwt], "\r\nauthorization: Basic eDp5", "Bearer"),
        (&[Jwt], "\r\nx-api-key: x", "Bearer"),
        (&[ApiKey], "", KEY),
        (&[ApiKey], "\r\nx-api-key: x", KEY),
        (&[ApiKey], "\r\nauthorization: Bearer x", KEY),
        (&[Bearer, ApiKey], "", &format!("Bearer, {KEY}")),
        (&[Bearer, ApiKey], "\r\nauthorization: Bearer x", &both),
        // Each scheme once.
        (&[Jwt, ApiKey, AuthMethod::Oidc, Bearer], "", &format!("Bearer, {KEY}")),
        (&[Jwt, ApiKey, AuthMethod::Oidc, Bearer], "\r\nauthorization: Bearer x", &both),
        // Of a method that the agent does not accept.
        (&[Jwt], &format!("\r\nauthorization: Bearer {TOKEN}"), INVALID),
        // Optional credentials must be valid too.
        (&[AuthMethod::Anonymous, Jwt], "\r\nauthorization: Bearer x", INVALID),
    ] {
        let server = setup(accepting(methods, EndUser::Off)).open().await;
        for path in ["/", "/a2a/echo"] {
            let head = format!("POST {path} HTTP/1.1\r\na2a-version: 1.0{headers}");
            let refused = server.exchange(&head, &send).await;
            let shown = (refused.status, refused.header("www-authenticate"));
            assert_eq!(shown, (401, Some(expected)), "{methods:?} {headers:?} {}", refused.body);
        }
        for path in ["/run/echo", "/a2a/echo/message:send"] {
            let head = format!("POST {path} HTTP/1.1\r\ncontent-type: application/json{headers}");
            let refused = server.exchange(&head, "{}").await;
            assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some(expected)), "{path}");
        }
    }
}

#[tokio::test]
async fn challenge_about_the_end_user_leaves_the_token_of_the_caller_alone() {
    let server = setup(accepting(&[AuthMethod::Bearer], EndUser::Required)).open().await;
    let send = request("SendMessage", &send_params("hi", ""));
    let caller = format!("\r\nauthorization: Bearer {TOKEN}");
    let end_user = r#"ApiKey name="X-End-User-Token""#;
    for (headers, expected) in [
        (String::new(), "Bearer"),
        (caller.clone(), end_user),
        (format!("{caller}\r\nx-end-user-token: a.b.c"), end_user),
        (format!("{caller}\r\nx-end-user-token: a.b.c\r\nx-end-user-token: a.b.c"), end_user),
    ] {
        let refused = server.exchange(&format!("POST / HTTP/1.1\r\na2a-version: 1.0{headers}"), &send).await;
        assert_eq!(
            (refused.status, refused.header("www-authenticate")),
            (401, Some(expected)),
            "{headers:?} {}",
            refused.body
        );
    }
}

#[tokio::test]
async fn agent_without_authentication_in_production_is_unavailable() {
    let server = setup(unconfigured()).open().await;
    let send = request("SendMessage", &send_params("hi", ""));
    for headers in ["", "\r\nauthorization: Bearer x", "\r\nx-api-key: x"] {
        let mcp = cfg!(feature = "mcp").then_some(("/mcp", "{}"));
        for (path, body) in
            [("/", send.as_str()), ("/a2a/echo", &send), ("/run/echo", "{}")].into_iter().chain(mcp)
        {
            let head = format!(
                "POST {path} HTTP/1.1\r\na2a-version: 1.0\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream{headers}"
            );
            let refused = server.exchange(&head, body).await;
            assert_eq!(refused.status, 503, "{path} {headers:?} {}", refused.body);
            assert!(refused.body.contains("operator has to set [auth]"), "{path}: {}", refused.body);
            assert!(refused.header("retry-after").is_some());
        }
    }
    let channel = Channel::open(&server).await;
    let operation = Operation::GetExtendedCard(GetExtendedCard::default());
    let refused = channel.call(Service::V1, &operation, &[]).await.status;
    assert_eq!(refused.error.unwrap().kind, ErrorKind::Unavailable);
    // Other agents and public pages are served.
    assert_eq!(server.get("/").await.status, 200);
    assert_eq!(server.get("/openapi.json").await.status, 200);
    assert_eq!(server.post_v1("/a2a/currency", &send).await.status, 200);
    assert_eq!(unconfigured().security, [("jwtBearer".to_owned(), jwt())]);
}

fn jwt() -> SecurityScheme {
    SecurityScheme::HttpAuth { description: None, scheme: "Bearer".into(), bearer_format: Some("JWT".into()) }
}
