//! Cards of remote agents: published samples of platforms, nonconforming cards, and documents that are not
//! cards.

use a2ad_protocol::{
    AgentCard, Violation,
    dialect::Dialect,
    model::{AgentInterface, SecurityRequirement, SecurityScheme},
};

use crate::codec::{Form, read, sample};

#[test]
fn published_sample_cards_are_read() {
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
fn security_of_the_published_sample_cards_is_read() {
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
    assert_eq!(security("001.json"), (vec![], vec![requires("oauth2")]), "a string instead of a list");
    assert_eq!(security("002.json"), (vec![], vec![requires("ApiKey")]), "a scheme without a type");
    assert_eq!(security("003.json"), (vec![bearer("apiKey")], vec![requires("apiKey")]));
    assert_eq!(security("004.json"), (vec![bearer("bearer")], vec![requires("bearer")]));
}

#[test]
fn draft_scheme_names_are_normalised() {
    let card = Form::AgentJson
        .decode(r#"{"name":"n","url":"u","authentication":{"schemes":["APIKEY","Bearer","jwt","bearer","OpenIDConnect",""]}}"#)
        .unwrap();
    let written = Form::AgentJson.encode(&card);
    assert!(
        written.contains(r#""authentication":{"schemes":["apiKey","bearer","jwt","openIdConnect"]}"#),
        "{written}"
    );
    assert_eq!(card.default_input_modes, ["text"], "the default mode of a draft card");
}

#[test]
fn nonconforming_card_is_read() {
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
fn generation_is_detected_by_members() {
    #[rustfmt::skip]
    let cases = [
        (r#"{"name":"n","url":"u"}"#, Dialect::Draft, "0.1"),
        (r#"{"name":"n","url":"u","authentication":null,"skills":null}"#, Dialect::Draft, "0.1"),
        (r#"{"name":"n","url":"u","preferredTransport":null,"supportedInterfaces":null}"#, Dialect::Draft,
         "0.1"),
        (r#"{"name":"n","url":"u","preferredTransport":"GRPC"}"#, Dialect::V03, "0.2"),
        (r#"{"name":"n","url":"u","securitySchemes":{}}"#, Dialect::V03, "0.2"),
        (r#"{"name":"n","url":"u","protocolVersion":"0.2.6"}"#, Dialect::V03, "0.2.6"),
        (r#"{"name":"n","url":"old","protocolVersion":"0.3.0","supportedInterfaces":[{"url":"u","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#,
         Dialect::V1, "1.0"),
    ];
    for (text, dialect, version) in cases {
        let (read_as, card) = read(text).unwrap();
        assert_eq!((read_as, card.interfaces[0].version.as_str()), (dialect, version), "{text}");
    }
}

#[test]
fn invalid_card_names_its_field() {
    let lacks = "required, expected a non-empty string";
    #[rustfmt::skip]
    let cases = [
        ("5", "", "expected an object"),
        (r#"{"url":"u"}"#, "name", lacks),
        (r#"{"name":"n"}"#, "url", lacks),
        (r#"{"name":"n","url":"u","securitySchemes":[]}"#, "securitySchemes", "expected an object"),
        (r#"{"name":"n","url":"u","securitySchemes":{"k":{"type":"apiKey","in":"body"}}}"#,
         "securitySchemes.k.in", "expected query, header or cookie"),
        (r#"{"name":"n","url":"u","securitySchemes":{"k":{"type":"oauth2","flows":{"clientCredentials":{}}}}}"#,
         "securitySchemes.k.flows.clientCredentials.tokenUrl", lacks),
        (r#"{"name":"n","url":"u","security":[{"k":"s"}]}"#, "security[0].k", "expected an array"),
        (r#"{"name":"n","url":"u","authentication":{"schemes":5}}"#, "authentication.schemes",
         "expected an array"),
        (r#"{"name":"n","url":"u","additionalInterfaces":[{"transport":"GRPC"}]}"#,
         "additionalInterfaces[0].url", lacks),
        (r#"{"name":"n","url":"u","skills":[{"name":"s"}]}"#, "skills[0].id", lacks),
        (r#"{"name":"n","url":"u","supportedInterfaces":[]}"#, "supportedInterfaces",
         "expected at least one interface"),
    ];
    for (text, field, problem) in cases {
        assert_eq!(read(text).map(|_| ()), Err(Violation::new(field, problem)), "{text}");
    }
}

#[test]
fn last_duplicate_scheme_wins() {
    let card: AgentCard = Form::V03.decode(&sample("careless.v03.json")).unwrap();
    assert!(card.security_schemes.iter().any(|(name, scheme)| name == "twice"
        && matches!(scheme, SecurityScheme::ApiKey { name, .. } if name == "X-Key")));
}

fn interface(url: &str, binding: &str, version: &str) -> AgentInterface {
    AgentInterface { url: url.into(), binding: binding.into(), tenant: None, version: version.into() }
}

fn requires(name: &str) -> SecurityRequirement {
    SecurityRequirement { schemes: vec![(name.to_owned(), Vec::new())] }
}
