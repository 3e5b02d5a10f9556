//! Caps per principal: how many tasks, streams and bytes one caller may have at a time.

use engine::{Limits, PrincipalCaps};

use crate::common::{Answer, Server, Setup, member, request, send_params, with_timeout};

async fn open(per_principal: PrincipalCaps) -> Server {
    let limits = Limits { per_principal, ..Limits::default() };
    Setup { limits, ..Setup::default() }.open_with_callers().await
}

fn head(agent: &str, caller: &str) -> String {
    format!("POST /a2a/{agent} HTTP/1.1\r\na2a-version: 1.0\r\ntest-caller: {caller}")
}

async fn call(server: &Server, agent: &str, caller: &str, method: &str, params: &str) -> Answer {
    server.exchange(&head(agent, caller), &request(method, params)).await
}

/// Starts a task that works until it is cancelled.
async fn hold(server: &Server, caller: &str) -> Answer {
    let params = send_params("hold", "").replace("]}}", r#"]},"configuration":{"returnImmediately":true}}"#);
    call(server, "echo", caller, "SendMessage", &params).await
}

fn by_id(task: &str) -> String {
    format!(r#"{{"id":"{task}"}}"#)
}

fn assert_refused(answer: &Answer, text: &str, retry_after: &str) {
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some(retry_after)), "{answer:?}");
    assert!(answer.body.contains("RATE_LIMITED") && answer.body.contains(text), "{answer:?}");
}

#[tokio::test]
async fn concurrent_sends_do_not_pass_the_cap_of_open_tasks() {
    let server = open(PrincipalCaps { tasks: 5, ..PrincipalCaps::default() }).await;
    let sends = (0..20).map(|_| hold(&server, "alice"));
    let answers = futures_util::future::join_all(sends).await;
    let (accepted, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((accepted.len(), refused.len()), (5, 15));
    for answer in refused {
        assert_refused(answer, "you have 5 open tasks, the most for one caller", "5");
    }
    // Another agent counts too, another caller does not, and reading is not limited.
    let other_agent = call(&server, "approver", "alice", "SendMessage", &send_params("jump", "")).await;
    assert_refused(&other_agent, r#""cap":"tasks""#, "5");
    assert_eq!(hold(&server, "bob").await.status, 200);
    let task = member(&accepted[0].body, "id");
    assert_eq!(call(&server, "echo", "alice", "GetTask", &by_id(&task)).await.status, 200);
    assert_eq!(call(&server, "echo", "alice", "CancelTask", &by_id(&task)).await.status, 200);
    assert_eq!(hold(&server, "alice").await.status, 200);
    assert_refused(&hold(&server, "alice").await, "open tasks", "5");
    let legacy = r#"{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}}"#;
    let head = "POST /a2a/echo HTTP/1.1\r\ntest-caller: alice";
    let refused = server.exchange(head, &request("message/send", legacy)).await;
    assert!(refused.status == 429 && refused.body.contains(r#""code":-32012"#), "{refused:?}");
}

#[tokio::test]
async fn tasks_that_wait_for_their_client_are_answered_at_the_cap() {
    let server = open(PrincipalCaps { interrupted: 2, ..PrincipalCaps::default() }).await;
    let ask = async || call(&server, "approver", "alice", "SendMessage", &send_params("jump", "")).await;
    let first = ask().await;
    assert!(first.body.contains("TASK_STATE_INPUT_REQUIRED"), "{first:?}");
    ask().await;
    assert_refused(&ask().await, "2 of your tasks wait for an answer", "60");
    let answer = send_params("yes", &format!(r#","taskId":"{}""#, member(&first.body, "id")));
    let answered = call(&server, "approver", "alice", "SendMessage", &answer).await;
    assert!(answered.body.contains("TASK_STATE_COMPLETED"), "{answered:?}");
    assert_eq!(ask().await.status, 200);
}

#[tokio::test]
async fn stored_bytes_refuse_messages_and_nothing_that_runs() {
    let server = open(PrincipalCaps { stored: 10_000, ..PrincipalCaps::default() }).await;
    let running = member(&hold(&server, "alice").await.body, "id");
    let large = send_params(&"x".repeat(12_000), "");
    assert_eq!(call(&server, "echo", "alice", "SendMessage", &large).await.status, 200);
    assert_refused(&hold(&server, "alice").await, "your stored tasks have 10000 bytes or more", "60");
    let more = send_params("more", &format!(r#","taskId":"{running}""#));
    assert_refused(&call(&server, "echo", "alice", "SendMessage", &more).await, "stored", "60");
    let canceled = call(&server, "echo", "alice", "CancelTask", &by_id(&running)).await;
    assert!(canceled.body.contains("TASK_STATE_CANCELED"), "{canceled:?}");
    assert_eq!(hold(&server, "bob").await.status, 200);
}

#[tokio::test]
async fn a_stream_counts_until_its_client_disconnects() {
    let server = open(PrincipalCaps { streams: 2, ..PrincipalCaps::default() }).await;
    let task = member(&hold(&server, "alice").await.body, "id");
    let subscribe = request("SubscribeToTask", &by_id(&task));
    let (first, _) = server.open_stream(&head("echo", "alice"), &subscribe).await;
    let (_second, _) = server.open_stream(&head("echo", "alice"), &subscribe).await;
    let third = server.exchange(&head("echo", "alice"), &subscribe).await;
    assert_refused(&third, "you have 2 open streams", "5");
    let send = request("SendStreamingMessage", &send_params("hi", ""));
    assert_eq!(server.exchange(&head("echo", "alice"), &send).await.status, 429);
    assert_eq!(server.exchange(&head("echo", "bob"), &send).await.status, 200);
    drop(first);
    with_timeout(async { while server.exchange(&head("echo", "alice"), &send).await.status != 200 {} }).await;
    // A stream that has ended does not count either.
    assert_eq!(server.exchange(&head("echo", "alice"), &send).await.status, 200);
}

#[tokio::test]
async fn anonymous_callers_on_loopback_have_no_caps() {
    let per_principal = PrincipalCaps { tasks: 1, streams: 1, interrupted: 1, stored: 1 };
    let limits = Limits { per_principal, ..Limits::default() };
    let server = Setup { limits, ..Setup::default() }.open().await;
    for _ in 0..3 {
        server.hold().await;
    }
}

#[cfg(feature = "mcp")]
#[tokio::test]
async fn standing_streams_of_mcp_count_as_streams() {
    use testkit::http1::Connection;

    let server = open(PrincipalCaps { streams: 2, ..PrincipalCaps::default() }).await;
    let start = async |method: &str, caller: &str, more: &[(&str, &str)], body: &str| {
        let mut connection = Connection::open(server.address).await.unwrap();
        let mut headers = vec![
            ("host", "x"),
            ("test-caller", caller),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
        ];
        headers.extend_from_slice(more);
        connection.send(method, "/a2a/echo/mcp", &headers, body.as_bytes()).await.unwrap();
        let head = with_timeout(connection.head()).await.unwrap();
        (connection, head)
    };
    let params =
        r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
    let initialize = request("initialize", params);
    let begin = async |caller: &str| {
        let (mut begun, head) = start("POST", caller, &[], &initialize).await;
        let body = with_timeout(begun.body()).await.unwrap();
        assert_eq!(head.status, 200, "{}", String::from_utf8_lossy(&body));
        let session = head.headers.get("mcp-session-id").unwrap().to_owned();
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        start("POST", caller, &[("mcp-session-id", &session)], initialized).await;
        session
    };
    let [one, two, three] = [begin("alice").await, begin("alice").await, begin("alice").await];
    let listen = async |session: &str, caller| start("GET", caller, &[("mcp-session-id", session)], "").await;
    let (first, head) = listen(&one, "alice").await;
    assert_eq!(head.status, 200);
    let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let newest = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];
    let (_second, head) = start("POST", "alice", &newest, subscribe).await;
    assert_eq!(head.status, 200);
    let (mut refused, head) = listen(&two, "alice").await;
    assert_eq!((head.status, head.headers.get("retry-after")), (429, Some("5")));
    let body = String::from_utf8(with_timeout(refused.body()).await.unwrap()).unwrap();
    assert!(body.contains("you have 2 open streams"), "{body}");
    // Streams of other bindings are the same streams, and other requests of the session are served.
    let send = request("SendStreamingMessage", &send_params("hi", ""));
    assert_eq!(server.exchange(&self::head("echo", "alice"), &send).await.status, 429);
    let (_, head) = start("POST", "alice", &[("mcp-session-id", &two)], &request("ping", "{}")).await;
    assert_eq!(head.status, 200);
    let session = begin("bob").await;
    assert_eq!(listen(&session, "bob").await.1.status, 200);
    drop(first);
    with_timeout(async { while listen(&three, "alice").await.1.status != 200 {} }).await;
}
