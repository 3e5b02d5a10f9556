//! Calls with API keys, over every binding.

use engine::{AgentSettings, AuthMethod, AuthMethods, DEFAULT_TENANT, NewApiKey};
use protocol::{ErrorKind, Operation, grpc::Service};

use crate::common::{Answer, Server, Setup, channel::Channel, member, request, send_params};

/// A server whose agents `echo` and `approver` require an API key; all others permit everybody.
async fn open() -> Server {
    let keyed =
        || AgentSettings { auth: AuthMethods::NONE.with(AuthMethod::ApiKey), ..AgentSettings::default() };
    Setup::with(|options| {
        options.agents = ["echo", "approver"].map(|agent| (agent.into(), keyed())).into();
    })
    .open()
    .await
}

/// Makes a key; returns its id and its text.
async fn key(server: &Server, agent: &str, owner: Option<&str>) -> (String, String) {
    let new = NewApiKey { tenant: DEFAULT_TENANT, agent, owner, prefix: "a2ad_" };
    let (key, text) = server.engine.create_api_key(&new, 20).await.unwrap();
    (key.id, text.expose().to_owned())
}

/// One call of `echo` over each binding of HTTP/1.1: request line with headers, and body.
fn calls() -> Vec<(&'static str, String)> {
    let mut calls = vec![
        ("POST /a2a/echo HTTP/1.1\r\na2a-version: 1.0", request("SendMessage", &send_params("hi", ""))),
        ("POST / HTTP/1.1\r\na2a-version: 1.0", request("SendMessage", &send_params("hi", ""))),
        ("POST /a2a/echo/message:send HTTP/1.1\r\na2a-version: 1.0", send_params("hi", "")),
        ("GET /tasks HTTP/1.1\r\na2a-version: 1.0", String::new()),
        ("POST /a2a/echo HTTP/1.1\r\ncontent-type: text/plain", "hi".into()),
        ("POST /run/echo HTTP/1.1\r\ncontent-type: text/plain", "hi".into()),
    ];
    if cfg!(feature = "mcp") {
        let head = "POST /mcp HTTP/1.1\r\naccept: application/json, text/event-stream\r\n\
                    content-type: application/json";
        let params =
            r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
        calls.push((head, request("initialize", params)));
    }
    calls
}

/// Makes a call with these headers.
async fn call(server: &Server, (head, body): &(&str, String), headers: &str) -> Answer {
    server.exchange(&format!("{head}{headers}"), body).await
}

#[tokio::test]
async fn every_binding_accepts_a_key_in_both_headers_and_nothing_else() {
    let server = open().await;
    let (_, valid) = key(&server, "echo", None).await;
    let (_, foreign) = key(&server, "approver", None).await;
    for sample in calls() {
        for headers in [format!("\r\nx-api-key: {valid}"), format!("\r\nauthorization: Bearer {valid}")] {
            let answer = call(&server, &sample, &headers).await;
            assert_eq!(answer.status, 200, "{sample:?} {answer:?}");
        }
        // No key contains this digit.
        let unknown = format!("{}0", &valid[..valid.len() - 1]);
        for headers in [
            String::new(),
            format!("\r\nx-api-key: {unknown}"),
            format!("\r\nauthorization: Bearer {unknown}"),
            format!("\r\nauthorization: Basic {valid}"),
            format!("\r\nx-api-key: {valid}\r\nx-api-key: {valid}"),
            format!("\r\nx-api-key: {valid}\r\nauthorization: Bearer {valid}"),
        ] {
            let answer = call(&server, &sample, &headers).await;
            assert_eq!(answer.status, 401, "{sample:?} {headers} {answer:?}");
            assert!(answer.header("www-authenticate").is_some(), "{answer:?}");
            assert!(!answer.body.contains(&valid), "{answer:?}");
        }
        // A key of another agent is known, and not for this one.
        let answer = call(&server, &sample, &format!("\r\nx-api-key: {foreign}")).await;
        assert_eq!(answer.status, 403, "{sample:?} {answer:?}");
    }
    // An agent that permits everybody and nothing else ignores credentials.
    let open = ("POST /a2a/demo HTTP/1.1\r\na2a-version: 1.0", request("ListTasks", "{}"));
    assert_eq!(call(&server, &open, &format!("\r\nx-api-key: {foreign}")).await.status, 200);
}

#[tokio::test]
async fn grpc_accepts_a_key_in_its_metadata() {
    let server = open().await;
    let (id, valid) = key(&server, "echo", None).await;
    let (_, foreign) = key(&server, "approver", None).await;
    let channel = Channel::open(&server).await;
    let operation = Operation::ListTasks(protocol::ListTasks::default());
    for service in [Service::V1, Service::V03] {
        let operation = match service {
            Service::V1 => operation.clone(),
            Service::V03 => Operation::GetTask(protocol::GetTask::from("unknown".to_owned())),
        };
        let code = async |metadata: &[(&str, &str)]| {
            let metadata = [&[("a2a-agent", "echo")], metadata].concat();
            channel.call(service, &operation, &metadata).await.status.code
        };
        let accepted = if service == Service::V1 { 0 } else { 5 };
        assert_eq!(code(&[("x-api-key", &valid)]).await, accepted);
        assert_eq!(code(&[("authorization", &format!("Bearer {valid}"))]).await, accepted);
        assert_eq!(code(&[]).await, 16);
        assert_eq!(code(&[("x-api-key", "a2ad_unknown_key")]).await, 16);
        assert_eq!(code(&[("x-api-key", &foreign)]).await, 7);
    }
    server.engine.revoke_api_key(&id).await.unwrap();
    let metadata = [("a2a-agent", "echo"), ("x-api-key", &*valid)];
    let refused = channel.call(Service::V1, &operation, &metadata).await;
    assert_eq!(refused.status.error.unwrap().kind, ErrorKind::Unauthenticated, "on the same connection");
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_on_an_open_connection() {
    let server = open().await;
    for (head, body) in calls() {
        let (id, text) = key(&server, "echo", None).await;
        let head = format!("{head}\r\nx-api-key: {text}");
        let mut wire = server.connect().await;
        wire.send(&head, &body).await;
        assert_eq!(wire.answer().await.status, 200, "{head}");
        assert!(server.engine.revoke_api_key(&id).await.unwrap());
        wire.send(&head, &body).await;
        assert_eq!(wire.answer().await.status, 401, "{head}");
    }
}

#[tokio::test]
async fn keys_of_one_owner_see_the_same_tasks_and_others_do_not() {
    let server = open().await;
    let (old, first) = key(&server, "echo", Some("alice")).await;
    let (_, second) = key(&server, "echo", Some("alice")).await;
    let (_, other) = key(&server, "echo", Some("bob")).await;
    let (_, unowned) = key(&server, "echo", None).await;
    let post = async |key: &str, body: &str| {
        let head = format!("POST /a2a/echo HTTP/1.1\r\na2a-version: 1.0\r\nx-api-key: {key}");
        server.exchange(&head, body).await
    };
    let task = member(&post(&first, &request("SendMessage", &send_params("hi", ""))).await.body, "id");
    let get = request("GetTask", &format!(r#"{{"id":"{task}"}}"#));
    // The replacement of a key has its tasks.
    assert!(server.engine.revoke_api_key(&old).await.unwrap());
    assert!(post(&second, &get).await.body.contains(&format!(r#""id":"{task}""#)));
    for stranger in [&other, &unowned] {
        let answer = post(stranger, &get).await;
        assert!(answer.body.contains("TASK_NOT_FOUND"), "{answer:?}");
    }
}
