//! Unknown paths and wrong methods get JSON errors.

use crate::common::{Answer, Server, request};

const NO_METHOD: &str = r#""error":{"code":-32601,"message":"Method not found","data":null}}"#;
const NO_PATH: &str = "send JSON-RPC calls to / or /a2a/{agent}, HTTP+JSON calls to /message:send";

fn is_json_error(answer: &Answer, status: u16, what: &str) {
    assert_eq!((answer.status, answer.header("content-type")), (status, Some("application/json")), "{what}");
    assert!(
        answer.body.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":{"code":"#),
        "{what}: {}",
        answer.body
    );
}

#[tokio::test]
async fn unknown_path_error_lists_the_paths() {
    let server = Server::open().await;
    for path in ["/nowhere", "/a2a/echo/more", "//", "/.well-known/", "/%00"] {
        for method in ["GET", "POST", "PUT"] {
            for version in ["", "\r\na2a-version: 1.0"] {
                let answer = server.exchange(&format!("{method} {path} HTTP/1.1{version}"), "").await;
                is_json_error(&answer, 404, path);
                assert!(answer.body.contains(NO_PATH), "{}", answer.body);
            }
            // The generations before 1.0 have one fixed text for it.
            let answer = server.exchange(&format!("{method} {path} HTTP/1.1\r\na2a-version: 0.1"), "").await;
            is_json_error(&answer, 404, path);
            assert!(answer.body.ends_with(NO_METHOD), "{}", answer.body);
            // A request that names the media type of HTTP+JSON gets an error in its form.
            for header in ["accept", "content-type"] {
                let head = format!("{method} {path} HTTP/1.1\r\n{header}: application/a2a+json");
                let answer = server.exchange(&head, "").await;
                let kind = answer.header("content-type");
                assert_eq!((answer.status, kind), (404, Some("application/a2a+json")), "{path}");
                let start = r#"{"error":{"code":404,"status":"UNIMPLEMENTED","message":"nothing is served"#;
                assert!(answer.body.starts_with(start), "{}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn invalid_agent_name_is_not_found() {
    let server = Server::open().await;
    let legacy = r#""error":{"code":-32011,"message":"Agent is not enabled","data":null}"#;
    let cases = [
        ("a2a-version: 1.0", "ListTasks", r#""reason":"AGENT_DISABLED""#),
        ("a2a-version: 0.1", "tasks/get", legacy),
        ("x: y", "tasks/sendSubscribe", legacy),
    ];
    for (header, method, error_text) in cases {
        for path in ["/a2a/%ff", "/a2a/nobody"] {
            let params = r#"{"id":"x","message":{"role":"user","parts":[{"text":"hi"}]}}"#;
            let head = format!("POST {path} HTTP/1.1\r\n{header}");
            let called = server.exchange(&head, &request(method, params)).await;
            let head = format!("GET {path}/.well-known/agent-card.json HTTP/1.1\r\n{header}");
            let asked = server.exchange(&head, "").await;
            for answer in [called, asked] {
                let kind = answer.header("content-type");
                assert_eq!((answer.status, kind), (404, Some("application/json")), "{path}");
                assert!(answer.body.contains(error_text), "{path} {header}: {}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn wrong_method_error_lists_the_allowed_methods() {
    let server = Server::open().await;
    let cases = [
        ("PUT /", "POST,GET,HEAD"),
        ("GET /a2a", "POST"),
        ("PUT /a2a/", "POST"),
        ("GET /_a2a/", "POST"),
        ("GET /_agent-native/a2a", "POST"),
        ("PATCH /a2a/rpc", "POST"),
        ("DELETE /a2a/echo", "POST"),
        ("GET /a2a/echo/", "POST"),
        ("POST /healthz", "GET,HEAD"),
        ("PUT /readyz", "GET,HEAD"),
        ("POST /.well-known/agent-card.json", "GET,HEAD"),
        ("POST /a2a/echo/.well-known/agent-card.json", "GET,HEAD"),
        ("POST /.well-known/agent.json", "GET,HEAD"),
        ("DELETE /a2a/echo/.well-known/agent.json", "GET,HEAD"),
    ];
    for (wrong, right) in cases {
        let answer = server.exchange(&format!("{wrong} HTTP/1.1"), "").await;
        is_json_error(&answer, 405, wrong);
        let text = format!("is not allowed at this path; use {}\"", right.replace(',', ", "));
        assert!(answer.body.contains(&text), "{}", answer.body);
        assert_eq!(
            answer.header("allow").map(|allow| allow.replace(' ', "")).as_deref(),
            Some(right),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn health_and_readiness_are_separate() {
    let server = Server::open().await;
    let ask = async |path: &str| {
        let answer = server.get(path).await;
        (answer.status, answer.body)
    };
    assert_eq!(ask("/healthz").await, (200, r#"{"status":"ok"}"#.into()));
    assert_eq!(ask("/readyz").await, (200, r#"{"status":"ready"}"#.into()));
    server.ready.set_not_ready();
    assert_eq!(ask("/readyz").await, (503, r#"{"status":"not ready"}"#.into()));
    assert_eq!(ask("/healthz").await, (200, r#"{"status":"ok"}"#.into()));
    // Open connections are still served.
    assert_eq!(server.post("/", &request("ListTasks", "{}")).await.status, 200);
}

#[tokio::test]
async fn card_at_unknown_path_error_lists_the_card_paths() {
    let server = Server::open().await;
    for path in
        ["/a2a/.well-known/agent-card.json", "/a2a/.well-known/agent.json", "/x/.well-known/agent.json"]
    {
        for version in ["", "\r\na2a-version: 1.0", "\r\na2a-version: 0.3"] {
            let answer = server.exchange(&format!("GET {path} HTTP/1.1{version}"), "").await;
            assert_eq!(answer.status, 404, "{path}");
            for at in ["at /.well-known/agent-card.json", "at /a2a/{agent}/.well-known/agent-card.json"] {
                assert!(answer.body.contains(at), "{path}{version}: {}", answer.body);
            }
        }
    }
}
