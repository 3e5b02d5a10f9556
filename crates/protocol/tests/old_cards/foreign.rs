//! Cards of strangers: those of the seeds, careless ones, and what is not a card.

use a2ad_protocol::{
    AgentCard, Violation,
    dialect::Dialect,
    model::{AgentInterface, SecurityRequirement, SecurityScheme},
};

use crate::codec::{Form, read, sample};

#[test]
fn the_sample_cards_of_the_seeds_are_read() {
    let cases = [
        ("000.json", Dialect::Draft, "https://my-tenant.fold.run", "0.1", "weather-lookup"),
        ("001.json", Dialect::Draft, "https://maps-agent.google.com", "0.1", "route-planner"),
        ("002.json", Dialect::V03, "https://<a2a-host>/a2a/{agentId}", "0.3.0", ""),
        ("003.json", Dialect::V03, "https://analytics.example.com", "0.3", "run-query"),
        ("004.json", Dialect::Draft, "https://other-agent.example.com/a2a/rpc", "0.1", "search"),
    ];
    for (name, dialect, url, version, skill) in cases {
        let (read_as, card) = read(&sample(&format!("seeds/{name}"))).unwrap();
        assert_eq!(read_as, dialect, "{name}");
        assert_eq!(card.interfaces, [interface(url, "JSONRPC", version)], "{name}");
        assert_eq!(card.skills.first().map_or("", |skill| skill.id.as_str()), skill, "{name}");
    }
}

#[test]
fn what_the_seeds_ask_of_their_callers_is_understood() {
    let security = |name: &str| {
        let (_, card) = read(&sample(&format!("seeds/{name}"))).unwrap();
        (card.security_schemes, card.security_requirements)
    };
    let bearer = |name: &str| {
        let scheme =
            SecurityScheme::HttpAuth { description: None, scheme: "bearer".into(), bearer_format: None };
        (name.to_owned(), scheme)
    };
    assert_eq!(security("000.json"), (vec![], vec![]));
    assert_eq!(security("001.json"), (vec![], vec![asks_for("oauth2")]), "one word instead of a list");
    assert_eq!(security("002.json"), (vec![], vec![asks_for("ApiKey")]), "a scheme that says nothing");
    assert_eq!(security("003.json"), (vec![bearer("apiKey")], vec![asks_for("apiKey")]));
    assert_eq!(security("004.json"), (vec![bearer("bearer")], vec![asks_for("bearer")]));
}

#[test]
fn the_words_of_the_draft_are_kept_whoever_writes_them_how() {
    let card = Form::AgentJson
        .decode(r#"{"name":"n","url":"u","authentication":{"schemes":["APIKEY","Bearer","jwt","bearer","OpenIDConnect",""]}}"#)
        .unwrap();
    let written = Form::AgentJson.encode(&card);
    assert!(
        written.contains(r#""authentication":{"schemes":["apiKey","bearer","jwt","openIdConnect"]}"#),
        "{written}"
    );
    assert_eq!(card.default_input_modes, ["text"], "what a card of the draft means that names no modes");
}

#[test]
fn a_card_of_a_careless_peer_is_read() {
    let (dialect, card) = read(&sample("careless.v03.json")).unwrap();
    assert_eq!(dialect, Dialect::V03);
    assert_eq!(
        card.interfaces,
        [
            interface("https://loose.example/a2a", "JSONRPC", "0.3.1"),
            interface("https://loose.example/v1", "HTTP+JSON", "0.3.1"),
        ]
    );
    assert_eq!(card.capabilities.extended_card, Some(true));
    assert_eq!(card.signatures.len(), 1);
    assert!(!Form::V03.encode(&card).contains("signatures"));
}

#[test]
fn members_tell_the_generation() {
    let cases = [
        (r#"{"name":"n","url":"u"}"#, Dialect::Draft, "0.1"),
        (r#"{"name":"n","url":"u","authentication":null,"skills":null}"#, Dialect::Draft, "0.1"),
        (
            r#"{"name":"n","url":"u","preferredTransport":null,"supportedInterfaces":null}"#,
            Dialect::Draft,
            "0.1",
        ),
        (r#"{"name":"n","url":"u","preferredTransport":"GRPC"}"#, Dialect::V03, "0.2"),
        (r#"{"name":"n","url":"u","securitySchemes":{}}"#, Dialect::V03, "0.2"),
        (r#"{"name":"n","url":"u","protocolVersion":"0.2.6"}"#, Dialect::V03, "0.2.6"),
        (
            r#"{"name":"n","url":"old","protocolVersion":"0.3.0","supportedInterfaces":[{"url":"u","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#,
            Dialect::V1,
            "1.0",
        ),
    ];
    for (text, dialect, version) in cases {
        let (read_as, card) = read(text).unwrap();
        assert_eq!((read_as, card.interfaces[0].version.as_str()), (dialect, version), "{text}");
    }
}

#[test]
fn what_is_not_a_card_names_its_field() {
    let lacks = "required, expected a non-empty string";
    let cases = [
        ("5", "", "expected an object"),
        (r#"{"url":"u"}"#, "name", lacks),
        (r#"{"name":"n"}"#, "url", lacks),
        (r#"{"name":"n","url":"u","securitySchemes":[]}"#, "securitySchemes", "expected an object"),
        (
            r#"{"name":"n","url":"u","securitySchemes":{"k":{"type":"apiKey","in":"body"}}}"#,
            "securitySchemes.k.in",
            "expected query, header or cookie",
        ),
        (
            r#"{"name":"n","url":"u","securitySchemes":{"k":{"type":"oauth2","flows":{"clientCredentials":{}}}}}"#,
            "securitySchemes.k.flows.clientCredentials.tokenUrl",
            lacks,
        ),
        (r#"{"name":"n","url":"u","security":[{"k":"s"}]}"#, "security[0].k", "expected an array"),
        (
            r#"{"name":"n","url":"u","authentication":{"schemes":5}}"#,
            "authentication.schemes",
            "expected an array",
        ),
        (
            r#"{"name":"n","url":"u","additionalInterfaces":[{"transport":"GRPC"}]}"#,
            "additionalInterfaces[0].url",
            lacks,
        ),
        (r#"{"name":"n","url":"u","skills":[{"name":"s"}]}"#, "skills[0].id", lacks),
        (
            r#"{"name":"n","url":"u","supportedInterfaces":[]}"#,
            "supportedInterfaces",
            "expected at least one interface",
        ),
    ];
    for (text, field, problem) in cases {
        assert_eq!(read(text).map(|_| ()), Err(Violation::new(field, problem)), "{text}");
    }
}

#[test]
fn a_scheme_repeated_is_the_last_one() {
    let card: AgentCard = Form::V03.decode(&sample("careless.v03.json")).unwrap();
    assert!(card.security_schemes.iter().any(|(name, scheme)| name == "twice"
        && matches!(scheme, SecurityScheme::ApiKey { name, .. } if name == "X-Key")));
}

fn interface(url: &str, binding: &str, version: &str) -> AgentInterface {
    AgentInterface { url: url.into(), binding: binding.into(), tenant: None, version: version.into() }
}

fn asks_for(name: &str) -> SecurityRequirement {
    SecurityRequirement { schemes: vec![(name.to_owned(), Vec::new())] }
}
