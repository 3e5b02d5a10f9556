//! Sessions belong to their caller and to their agent.

use a2ad_inbound::{Caller, HttpService, Ready, ServerOptions};
use axum::{extract::Request, middleware::Next};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::Client;
use crate::common::Server;

#[tokio::test]
async fn session_ends_when_its_client_deletes_it() {
    let server = Server::open().await;
    let client = Client::with_session(&server, "/mcp", json!({})).await;
    client.request("tools/list", json!({})).await;
    assert_eq!(client.send("DELETE", &[], b"").await.status, 204);
    assert_eq!(client.start(1, "tools/list", json!({})).await.status, 404);
    assert_eq!(client.send("GET", &[], b"").await.status, 404);
}

#[tokio::test]
async fn session_of_another_agent_is_unknown() {
    let server = Server::open().await;
    let mut client = Client::with_session(&server, "/a2a/approver/mcp", json!({})).await;
    client.path = "/a2a/echo/mcp";
    assert_eq!(client.start(1, "tools/list", json!({})).await.status, 404);
    // The default agent is the same at both of its paths.
    let mut client = Client::with_session(&server, "/a2a/echo/mcp", json!({})).await;
    client.path = "/mcp";
    client.request("tools/list", json!({})).await;
}

/// An application that identifies its callers by a header.
async fn request(
    router: &axum::Router,
    caller: &str,
    session: Option<&str>,
    method: &str,
    body: &Value,
) -> (u16, Option<String>, String) {
    let mut request = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("x-caller", caller)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = router.clone().oneshot(request.body(axum::body::Body::from(body)).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    if method == "GET" && status == 200 {
        return (status, session, String::new());
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, session, String::from_utf8(body.to_vec()).unwrap())
}

fn application(server: &Server) -> axum::Router {
    let service = HttpService::new(server.engine.clone(), ServerOptions::default(), Ready::default());
    service.router().layer(axum::middleware::from_fn(async |mut req: Request, next: Next| {
        let caller = req.headers()["x-caller"].to_str().unwrap().to_owned();
        req.extensions_mut().insert(Caller::new(caller));
        next.run(req).await
    }))
}

/// Begins a session; returns its id.
async fn begin(router: &axum::Router, caller: &str) -> String {
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let (status, session, body) = request(router, caller, None, "POST", &initialize).await;
    assert_eq!(status, 200, "{body}");
    let session = session.unwrap();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(request(router, caller, Some(&session), "POST", &initialized).await.0, 202);
    session
}

#[tokio::test]
async fn session_over_the_limit_ends_the_idlest_of_who_has_most() {
    let server = Server::open().await;
    let router = application(&server);
    let alice = begin(&router, "alice").await;
    let mut bob = Vec::new();
    for _ in 0..1_023 {
        bob.push(begin(&router, "bob").await);
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let uses =
        async |caller: &str, session: &str| request(&router, caller, Some(session), "POST", &list).await.0;
    // The first one is used, so the second one is idle for longest.
    assert_eq!(uses("bob", &bob[0]).await, 200);
    let carol = begin(&router, "carol").await;
    assert_eq!(uses("bob", &bob[1]).await, 404);
    for (caller, session) in [("alice", &alice), ("bob", &bob[0]), ("bob", &bob[2]), ("carol", &carol)] {
        assert_eq!(uses(caller, session).await, 200, "{caller}");
    }
}

#[tokio::test]
async fn session_of_another_caller_is_unknown() {
    let server = Server::open().await;
    let router = application(&server);
    let session = begin(&router, "alice").await;
    let session = Some(session.as_str());
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let unknown = Some("00000000-0000-4000-8000-000000000000");
    for (method, body) in
        [("POST", &list), ("POST", &initialized), ("GET", &Value::Null), ("DELETE", &Value::Null)]
    {
        let foreign = request(&router, "bob", session, method, body).await;
        assert_eq!(foreign, request(&router, "bob", unknown, method, body).await, "{method}");
    }
    // Bob's DELETE has ended nothing.
    let (status, _, listed) = request(&router, "alice", session, "POST", &list).await;
    assert!(status == 200 && listed.contains(r#""name":"echo""#), "{listed}");
}
