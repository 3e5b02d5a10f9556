//! The OpenAPI document of an agent's skills.

use a2ad_inbound::{AgentSettings, AuthMethods};
use engine::{DEFAULT_TENANT, ExtendedCard};
use protocol::model::SecurityScheme;

use crate::common::{Server, Setup, agents};

#[expect(clippy::disallowed_types, reason = "the document is read as its users read it")]
type Value = serde_json::Value;

const INPUT: &str =
    r##"{"$schema":"x","properties":{"to":{"$ref":"#/$defs/place"}},"$defs":{"place":{"type":"string"}}}"##;
const OUTPUT: &str = r#"{"type":"object"}"#;

async fn open(extended_card: ExtendedCard) -> Server {
    setup(extended_card).open().await
}

fn setup(extended_card: ExtendedCard) -> Setup {
    let with_schemas = |agent, skill| agents::with_schemas(agent, skill, INPUT, OUTPUT);
    let skilled =
        ["forms", "secret"].into_iter().fold(agents::skilled(&["forms", "a/b {c}", "secret"]), with_schemas);
    let mut setup = Setup { agents: vec![skilled], ..Setup::default() };
    let settings = AgentSettings { extended_card, ..AgentSettings::default() };
    setup.options.extended_skills = vec![("skilled", "secret")];
    setup.options.agents.insert("skilled".into(), settings);
    setup.options.default_agent = "skilled".into();
    setup
}

/// What a reference of the document points to.
fn resolve<'a>(document: &'a Value, reference: &Value) -> &'a Value {
    let pointer = reference["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
    document.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing"))
}

#[tokio::test]
async fn each_skill_is_an_operation_with_its_schemas() {
    let server = open(ExtendedCard::Protected).await;
    for path in ["/openapi.json", "/a2a/skilled/openapi.json"] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        let document: Value = answer.body.parse().unwrap();
        assert_eq!((&document["openapi"], &document["info"]["version"]), (&"3.1.0".into(), &"1.2.3".into()));
        let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
        let expected = ["/run/forms", "/run/a%2Fb%20%7Bc%7D"];
        assert_eq!(paths.len(), 2, "{paths:?}");
        assert!(expected.iter().all(|path| paths.iter().any(|listed| listed == path)), "{paths:?}");
        assert!(!answer.body.contains("secret"));
        // Each path is one that is served.
        for path in expected {
            let base = document["servers"][0]["url"].as_str().unwrap();
            let head = format!("POST {base}{path} HTTP/1.1\r\ncontent-type: text/plain");
            assert_eq!(server.exchange(&head, "nothing").await.status, 200, "{path}");
        }
        let operation = &document["paths"]["/run/forms"]["post"];
        assert_eq!(operation["operationId"], "forms");
        let input = resolve(&document, &operation["requestBody"]["content"]["application/json"]["schema"]);
        assert_eq!(resolve(&document, &input["properties"]["to"])["type"], "string");
        assert_eq!(input.get("$schema"), None);
        let output = &operation["responses"]["200"]["content"]["application/json"]["schema"]["anyOf"][0];
        assert_eq!(resolve(&document, output)["type"], "object");
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = if status == "200" { response } else { resolve(&document, response) };
            assert!(response["description"].is_string(), "{status}");
            let events = &response["content"]["text/event-stream"];
            assert_eq!(events.is_object(), status == "200", "{status}");
            // These are states of tasks, and errors about requests.
            let schemas = response["content"]["application/json"]["schema"]["anyOf"].as_array();
            let is_either = schemas.is_some_and(|schemas| schemas.len() == 2);
            assert_eq!(is_either, matches!(status.as_str(), "200" | "409" | "422" | "502"), "{status}");
        }
    }
}

#[tokio::test]
async fn skills_of_the_extended_card_are_shown_to_callers_with_a_credential() {
    let alice = "GET /openapi.json HTTP/1.1\r\ntest-caller: alice";
    let server = setup(ExtendedCard::Protected).open_with_callers().await;
    let vary = Some("Authorization, X-Api-Key, X-End-User-Token, Cookie");
    for _ in 0..2 {
        let extended = server.exchange(alice, "").await;
        assert!(extended.body.contains("/run/secret") && extended.body.contains("/run/forms"));
        assert_eq!(
            (extended.header("cache-control"), extended.header("vary")),
            (Some("private, no-cache"), vary)
        );
        let public = server.get("/openapi.json").await;
        assert!(!public.body.contains("secret") && public.body.contains("/run/forms"));
        assert_eq!(
            (public.header("cache-control"), public.header("vary")),
            (Some("public, max-age=60"), vary)
        );
    }
    // Where everybody may see the extended card, all callers get the same document.
    let server = setup(ExtendedCard::Open).open_with_callers().await;
    let (known, anonymous) = (server.exchange(alice, "").await, server.get("/openapi.json").await);
    assert!(anonymous.body.contains("/run/secret"));
    assert_eq!(known.body, anonymous.body);
    for answer in [known, anonymous] {
        assert_eq!(
            (answer.header("cache-control"), answer.header("vary")),
            (Some("public, max-age=60"), None)
        );
    }
}

#[tokio::test]
async fn schemas_of_similar_ids_are_different_components() {
    let ids = ["a_b", "a/b", "a b", "a_b.2", "a_b.input"];
    let with_title =
        |agent, id: &&str| agents::with_schemas(agent, id, &format!(r#"{{"title":"{id}"}}"#), OUTPUT);
    let agent = ids.iter().fold(agents::skilled(&ids), with_title);
    let server = Setup { agents: vec![agent], ..Setup::default() }.open().await;
    let document: Value = server.get("/a2a/skilled/openapi.json").await.body.parse().unwrap();
    for operation in document["paths"].as_object().unwrap().values() {
        let operation = &operation["post"];
        let input = &operation["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(resolve(&document, input)["title"], operation["operationId"]);
    }
}

#[tokio::test]
async fn security_schemes_of_the_agent_are_declared() {
    let scheme = SecurityScheme::HttpAuth { description: None, scheme: "Bearer".into(), bearer_format: None };
    let settings = AgentSettings {
        security: vec![("token".into(), scheme)],
        auth: AuthMethods::NONE,
        ..AgentSettings::default()
    };
    let server = Setup::with(|options| {
        options.agents.insert("echo".into(), settings);
    });
    let document = server.open().await.get("/openapi.json").await.body;
    for part in [
        r#""security":[{"token":[]}]"#,
        r#""components":{"securitySchemes":{"token":{"type":"http","scheme":"Bearer"}},"#,
    ] {
        assert!(document.contains(part), "{part} in {document}");
    }
}

#[tokio::test]
async fn one_document_serves_both_paths() {
    let server =
        Setup::with(|options| options.public_url = Some("https://agents.example".into())).open().await;
    let (at_root, named) = (server.get("/openapi.json").await, server.get("/a2a/echo/openapi.json").await);
    assert_eq!((&at_root.body, at_root.header("etag")), (&named.body, named.header("etag")));
    assert!(
        named.body.contains(r#""servers":[{"url":"https://agents.example/a2a/echo"}]"#),
        "{}",
        named.body
    );
    let catalog = server.engine.catalog().load();
    assert_eq!(catalog.get(DEFAULT_TENANT, "echo").unwrap().cards().len(), 1);
}

#[tokio::test]
async fn document_is_cached_like_a_card() {
    let server = open(ExtendedCard::Protected).await;
    let first = server.get("/openapi.json").await;
    let etag = first.header("etag").unwrap();
    assert_eq!(first.header("cache-control"), Some("public, max-age=60"));
    let head = format!("GET /openapi.json HTTP/1.1\r\nif-none-match: {etag}");
    let second = server.exchange(&head, "").await;
    assert_eq!((second.status, second.body.as_str(), second.header("etag")), (304, "", Some(etag)));
    assert_ne!(server.get("/a2a/echo/openapi.json").await.header("etag"), Some(etag));
    let missing = server.get("/a2a/nobody/openapi.json").await;
    assert_eq!(missing.status, 404);
    assert!(missing.body.contains("AGENT_DISABLED"), "{}", missing.body);
    let posted = server.exchange("POST /openapi.json HTTP/1.1", "").await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
}
