//! fold.run: skills are called with bare arguments, results are JSON text.

use a2ad_inbound::Profile;

use super::{call, error, result, server_with_profile};
use crate::common::{NOW, Server, mask, member, request};

const ARGUMENTS: &str = r#"{"skill":"echo","message":{"city":"Oslo","n":9007199254740993}}"#;

#[tokio::test]
async fn skill_accepts_bare_arguments_and_returns_text() {
    let server = Server::open().await;
    for path in ["/_a2a/", "/_a2a"] {
        let body = request("tasks/send", ARGUMENTS).replace(r#""id":1"#, r#""id":"req-1""#);
        let sent = server.post(path, &body).await;
        let text = r#"{\"city\":\"Oslo\",\"n\":9007199254740993}"#;
        let expected = format!(
            r#"{{"jsonrpc":"2.0","id":"req-1","result":{{"id":"TASK","sessionId":"CTX","status":{{"state":"completed","timestamp":"{NOW}"}},"artifacts":[{{"name":"echo-result","parts":[{{"type":"text","text":"{text}"}}],"index":0}}],"history":[]}}}}"#
        );
        assert_eq!((sent.status, mask(&sent.body)), (200, expected));
        // The finished task can be read.
        let about = format!(r#"{{"id":"{}"}}"#, member(&sent.body[30..], "id"));
        let got = server.post(path, &request("tasks/get", &about)).await;
        assert_eq!(result(&got), result(&sent));
    }
}

#[tokio::test]
async fn task_id_is_optional_only_in_this_profile() {
    let server = Server::open().await;
    for path in ["/", "/a2a", "/a2a/rpc", "/_agent-native/a2a", "/tasks/send", "/a2a/echo"] {
        let refused = server.post(path, &request("tasks/send", ARGUMENTS)).await;
        let data = r#"{"errors":[{"field":"id","message":"required, expected a non-empty string"}]}"#;
        assert_eq!(
            error(&refused),
            format!(r#"{{"code":-32602,"message":"Invalid parameters","data":{data}}}"#),
            "{path}"
        );
        // With a task id bare arguments are accepted, and returned as data.
        let named = ARGUMENTS.replace(r#"{"skill""#, &format!(r#"{{"id":"of {path}","skill""#));
        let sent = server.post(path, &request("tasks/send", &named)).await;
        assert!(sent.body.contains(r#""data":{"city":"Oslo","n":9007199254740993}"#), "{}", sent.body);
        assert!(sent.body.contains(r#""type":"data""#), "{}", sent.body);
    }
    // A given task id is used in this profile too.
    let named = ARGUMENTS.replace(r#"{"skill""#, r#"{"id":"mine","skill""#);
    let sent = server.post("/_a2a/", &request("tasks/send", &named)).await;
    assert_eq!(member(&sent.body, "id"), "mine");
}

#[tokio::test]
async fn stream_has_results_as_text() {
    let server = Server::open().await;
    let body = request("tasks/sendSubscribe", ARGUMENTS);
    let (mut wire, _) = server.open_stream("POST /_a2a/ HTTP/1.1", &body).await;
    let events = wire.events().await;
    assert!(events[2].contains(r#""parts":[{"type":"text","text":"{\"city\":\"Oslo\","#), "{}", events[2]);
    assert!(events[3].contains(r#""state":"completed""#) && events[3].contains(r#""final":true"#));
}

#[tokio::test]
async fn errors_have_distinct_codes() {
    let server = server_with_profile(&Profile::fold()).await;
    let cases = [
        ("tasks/make", "{}", -32601, "Method not found"),
        ("tasks/send", r#"{"skill":"fly","message":{}}"#, -32602, "Invalid parameters"),
        ("tasks/get", r#"{"id":"x"}"#, -32001, "Task not found"),
    ];
    for (method, params, code, text) in cases {
        let answer = server.post("/_a2a/", &request(method, params)).await;
        assert_eq!(answer.status, 200);
        let expected = format!(r#"{{"code":{code},"message":"{text}","data":"#);
        assert!(error(&answer).starts_with(&expected), "{}", answer.body);
    }
    let malformed = server.post("/_a2a/", r#"{"jsonrpc":"2.0","id":1}"#).await;
    assert!(error(&malformed).starts_with(r#"{"code":-32600,"#), "{}", malformed.body);
}

#[tokio::test]
async fn panic_is_an_internal_error_and_failure_is_a_task() {
    let server = server_with_profile(&Profile::fold()).await;
    let crashed = call(&server, "panics", "tasks/send", r#"{"id":"mine","message":{}}"#).await;
    assert_eq!((crashed.status, crashed.header("a2ad-dialect")), (200, Some("draft;profile=fold")));
    let error_text = error(&crashed);
    assert!(
        error_text.starts_with(r#"{"code":-32603,"message":"Internal error","data":{"errors":["#),
        "{error_text}"
    );
    assert!(!error_text.contains("panic of the test"), "the panic message must not be sent: {error_text}");
    // The task is stored as failed and can be read.
    let got = call(&server, "panics", "tasks/get", r#"{"id":"mine"}"#).await;
    assert_eq!(member(&got.body, "state"), "failed", "{}", got.body);

    let failed = call(&server, "fails", "tasks/send", r#"{"message":{}}"#).await;
    assert_eq!(member(&failed.body, "state"), "failed", "{}", failed.body);
    assert!(failed.body.contains("out of paper"), "{}", failed.body);

    // In other profiles a panic gives a failed task.
    let neutral = server_with_profile(&Profile::neutral()).await;
    let crashed = call(&neutral, "panics", "tasks/send", r#"{"id":"mine","message":{}}"#).await;
    assert_eq!(member(&crashed.body, "state"), "failed", "{}", crashed.body);
}

#[tokio::test]
async fn card_has_json_modes_and_no_security_fields() {
    let server = server_with_profile(&Profile::fold()).await;
    let modes = r#"["application/json"]"#;
    for path in ["/.well-known/agent.json", "/a2a/echo/.well-known/agent.json"] {
        let card = server.get(path).await.body;
        assert_eq!(member(&card, "url"), "http://example.test", "{path}");
        for name in ["defaultInputModes", "defaultOutputModes", "inputModes", "outputModes"] {
            assert!(card.contains(&format!(r#""{name}":{modes}"#)), "{path} {name}: {card}");
        }
        let flags =
            r#""capabilities":{"streaming":true,"pushNotifications":false,"stateTransitionHistory":false}"#;
        assert!(card.contains(flags), "{card}");
        assert!(!card.contains("authentication") && !card.contains("security"), "{card}");
    }
    // The origin accepts calls only for the default agent.
    let card = server.get("/a2a/approver/.well-known/agent.json").await.body;
    assert_eq!(member(&card, "url"), "http://example.test/a2a/approver");
}
