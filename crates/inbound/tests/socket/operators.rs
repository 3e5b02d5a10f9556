//! The operators' API: `/console/api/keys`.

use a2ad_inbound::{ApiKeyOptions, AuthOptions};
use engine::{AgentSettings, AuthMethod, AuthMethods};
use protocol::model::Secret;

use crate::common::{Answer, NOW, Server, Setup, member};

const KEYS: &str = "/console/api/keys";
pub(crate) const ADMIN: &str = "the-token-of-the-operators";

pub(crate) async fn open() -> Server {
    let mut setup = Setup::default();
    setup.options.auth = AuthOptions { admin_token: Some(Secret::new(ADMIN)), ..AuthOptions::default() };
    let settings =
        AgentSettings { auth: AuthMethods::NONE.with(AuthMethod::ApiKey), ..AgentSettings::default() };
    setup.options.agents.insert("echo".into(), settings);
    setup.open().await
}

/// Sends a request with the admin token.
pub(crate) async fn send(server: &Server, method: &str, path: &str, body: &str) -> Answer {
    let head = format!("{method} {path} HTTP/1.1\r\nauthorization: Bearer {ADMIN}");
    let head = if body.is_empty() { head } else { format!("{head}\r\ncontent-type: application/json") };
    let answer = server.exchange(&head, body).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    answer
}

async fn create(server: &Server, body: &str) -> Answer {
    send(server, "POST", KEYS, body).await
}

/// Asserts the status and the texts of an error.
#[track_caller]
pub(crate) fn refused(answer: &Answer, status: u16, reason: &str, texts: &[&str]) {
    assert_eq!((answer.status, member(&answer.body, "reason")), (status, reason.to_owned()), "{answer:?}");
    assert!(answer.body.starts_with(&format!("{{\"error\":{{\"code\":{status},\"status\":")), "{answer:?}");
    for text in texts {
        assert!(answer.body.contains(text), "{text} is not in {answer:?}");
    }
}

#[tokio::test]
async fn a_key_is_made_shown_once_listed_and_revoked() {
    let server = open().await;
    assert_eq!(send(&server, "GET", KEYS, "").await.body, r#"{"keys":[]}"#);
    let created = create(&server, r#"{"agent":"echo","owner":"alice"}"#).await;
    assert_eq!(created.status, 201);
    let (id, key) = (member(&created.body, "id"), member(&created.body, "key"));
    let masked = format!("a2ad_{id}_…{}", &key[key.len() - 4..]);
    let shown = format!(
        r#"{{"id":"{id}","agent":"echo","owner":"alice","scope":"a2a-agent:echo","masked":"{masked}","createdAt":"{NOW}""#
    );
    assert_eq!(created.body, format!(r#"{shown},"key":"{key}"}}"#));
    assert!(key.starts_with(&format!("a2ad_{id}_")), "{key}");

    let other = create(&server, r#"{"agent":"currency"}"#).await;
    let other_id = member(&other.body, "id");
    assert_eq!(member(&other.body, "owner"), other_id);
    assert!(other.body.contains("currency\\\" does not accept API keys; add "), "{other:?}");
    let all = send(&server, "GET", KEYS, "").await.body;
    assert!(all.find(&other_id).unwrap() < all.find(&id).unwrap(), "newest first: {all}");
    for key in [&key, &member(&other.body, "key")] {
        assert!(!all.contains(key.rsplit_once('_').unwrap().1), "{all}");
    }
    let listed = send(&server, "GET", &format!("{KEYS}?agent=echo"), "").await;
    assert_eq!((listed.status, listed.body), (200, format!(r#"{{"keys":[{shown}}}]}}"#)));
    assert_eq!(send(&server, "GET", &format!("{KEYS}?agent=nobody"), "").await.body, r#"{"keys":[]}"#);

    let revoked = send(&server, "DELETE", &format!("{KEYS}/{id}"), "").await;
    assert_eq!((revoked.status, revoked.body), (200, format!(r#"{shown},"revokedAt":"{NOW}"}}"#)));
    let again = send(&server, "DELETE", &format!("{KEYS}/{id}"), "").await;
    refused(&again, 404, "NOT_FOUND", &["there is no valid API key with the id"]);
    for unknown in ["nobody", "a/b", "%00", "%ff", "a%20b"] {
        refused(&send(&server, "DELETE", &format!("{KEYS}/{unknown}"), "").await, 404, "NOT_FOUND", &[]);
    }
    let listed = send(&server, "GET", &format!("{KEYS}?agent=echo"), "").await;
    assert!(listed.body.contains(&format!(r#""revokedAt":"{NOW}""#)), "{listed:?}");
}

#[tokio::test]
async fn requests_that_cannot_be_used_name_what_is_wrong() {
    let server = open().await;
    let long = format!(r#"{{"agent":"echo","owner":"{}"}}"#, "o".repeat(129));
    for (body, status, reason, texts) in [
        ("{", 400, "PARSE_ERROR", &["the body is not JSON"][..]),
        ("[]", 400, "INVALID_PARAMS", &["expected an object"]),
        ("{}", 400, "INVALID_PARAMS", &["agent: required"]),
        (r#"{"agent":""}"#, 400, "INVALID_PARAMS", &["agent: expected a non-empty string"]),
        (r#"{"agent":7}"#, 400, "INVALID_PARAMS", &["agent: expected a string"]),
        (r#"{"agent":"nobody"}"#, 404, "AGENT_DISABLED", &["there is no agent"]),
        (
            r#"{"agent":"echo","owner":""}"#,
            400,
            "INVALID_PARAMS",
            &["owner: ", "1 to 128 visible characters"],
        ),
        (r#"{"agent":"echo","owner":"a b"}"#, 400, "INVALID_PARAMS", &["owner: ", "no spaces"]),
        (r#"{"agent":"echo","owner":"a\u0000"}"#, 400, "INVALID_PARAMS", &["owner: "]),
        (r#"{"agent":"echo","owner":[]}"#, 400, "INVALID_PARAMS", &["owner: expected a string"]),
        (&long, 400, "INVALID_PARAMS", &["owner: "]),
        (
            r#"{"agent":"echo","scope":"*"}"#,
            400,
            "INVALID_PARAMS",
            &["scope: unknown member; the members are agent, owner", "\"field\":\"scope\""],
        ),
        (r#"{"agent":"echo","agent":"demo"}"#, 400, "INVALID_PARAMS", &["agent: the member is repeated"]),
        (&format!(r#"{{"agent":"echo"{}}}"#, " ".repeat(4096)), 413, "BODY_TOO_LARGE", &["4096 bytes"]),
    ] {
        refused(&create(&server, body).await, status, reason, texts);
    }
    refused(&create(&server, "").await, 400, "PARSE_ERROR", &["the body is not JSON"]);
    for (query, text) in [
        ("?agnet=echo", "agnet: unknown parameter; the only one is agent"),
        ("?agent=", "agent: expected a value"),
        ("?agent=a&agent=b", "agent: the parameter is repeated"),
    ] {
        let answer = send(&server, "GET", &format!("{KEYS}{query}"), "").await;
        refused(&answer, 400, "INVALID_PARAMS", &[text]);
    }
    let head = format!("POST {KEYS} HTTP/1.1\r\nauthorization: Bearer {ADMIN}\r\ncontent-type: text/plain");
    let answer = server.exchange(&head, r#"{"agent":"echo"}"#).await;
    refused(&answer, 415, "UNSUPPORTED_MEDIA_TYPE", &["application/json"]);
    for (method, path, allowed) in
        [("PUT", KEYS, "GET, HEAD, POST"), ("GET", "/console/api/keys/x", "DELETE")]
    {
        let answer = send(&server, method, path, "").await;
        refused(&answer, 405, "METHOD_NOT_FOUND", &[]);
        assert_eq!(answer.header("allow"), Some(allowed));
    }
    assert_eq!(send(&server, "GET", KEYS, "").await.body, r#"{"keys":[]}"#);
}

#[tokio::test]
async fn who_has_no_admin_token_is_refused() {
    let server = open().await;
    let answer = server.get(KEYS).await;
    refused(&answer, 401, "UNAUTHENTICATED", &["requires the admin token"]);
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    // A key of an agent is no admin token.
    let key = member(&create(&server, r#"{"agent":"echo"}"#).await.body, "key");
    for credential in [format!("authorization: Bearer {key}"), format!("x-api-key: {key}")] {
        let answer = server.exchange(&format!("GET {KEYS} HTTP/1.1\r\n{credential}"), "").await;
        refused(&answer, 401, "UNAUTHENTICATED", &["admin token"]);
        assert!(!answer.body.contains(&key), "{answer:?}");
    }
    // Nor does the admin token call agents.
    let head = format!("POST /a2a/echo/message:send HTTP/1.1\r\nauthorization: Bearer {ADMIN}");
    let answer = server.exchange(&head, "{}").await;
    assert_eq!(answer.status, 401, "{answer:?}");
}

#[tokio::test]
async fn an_agent_has_as_many_keys_as_configured() {
    let mut setup = Setup::default();
    setup.options.auth = AuthOptions {
        admin_token: Some(Secret::new(ADMIN)),
        api_keys: ApiKeyOptions { prefix: "pf_a2a_".into(), max_per_agent: 2 },
        ..AuthOptions::default()
    };
    let server = setup.open().await;
    let first = create(&server, r#"{"agent":"echo"}"#).await;
    assert!(member(&first.body, "key").starts_with("pf_a2a_"), "{first:?}");
    assert_eq!(create(&server, r#"{"agent":"echo"}"#).await.status, 201);
    let full = create(&server, r#"{"agent":"echo"}"#).await;
    refused(&full, 409, "CONFLICT", &["the agent has 2 valid keys", "revoke one first"]);
    assert_eq!(create(&server, r#"{"agent":"demo"}"#).await.status, 201);
    let path = format!("{KEYS}/{}", member(&first.body, "id"));
    assert_eq!(send(&server, "DELETE", &path, "").await.status, 200);
    assert_eq!(create(&server, r#"{"agent":"echo"}"#).await.status, 201);
}
