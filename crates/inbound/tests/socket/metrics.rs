//! `/metrics`: what is counted, and who may read it.

use std::time::Duration;

use a2ad_inbound::AuthOptions;
use protocol::model::Secret;

use crate::common::{Answer, Server, Setup, request, send_params, with_timeout};

const ADMIN: &str = "the-token-of-the-operators";

/// Requests the page, with these headers. Without a token, only loopback may be named.
async fn get(server: &Server, headers: &str) -> Answer {
    server.exchange(&format!("GET /metrics HTTP/1.1\r\nhost: localhost{headers}"), "").await
}

/// The page of a server.
async fn page(server: &Server) -> String {
    let answer = get(server, "").await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")), "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    answer.body
}

/// The value of a sample; `None` if the page does not have it.
fn value(page: &str, sample: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

/// Waits until a sample has this value: what ends with a connection is counted after the client has noticed it.
async fn reaches(server: &Server, sample: &str, expected: f64) {
    with_timeout(async {
        while value(&page(server).await, sample) != Some(expected) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn calls_are_counted_by_binding_dialect_and_outcome() {
    let server = Server::open().await;
    let send = request("SendMessage", &send_params("hello", ""));
    for _ in 0..3 {
        assert_eq!(server.post_v1("/", &send).await.status, 200);
    }
    let get = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}"#;
    server.exchange("POST / HTTP/1.1\r\na2a-version: 0.3\r\ncontent-type: application/json", get).await;
    let head = "POST /message:send HTTP/1.1\r\na2a-version: 1.0\r\ncontent-type: application/json";
    assert_eq!(server.exchange(head, "{}").await.status, 400);
    let page = page(&server).await;
    let requests = |labels: &str| value(&page, &format!("a2ad_requests_total{{{labels}}}"));
    assert_eq!(requests(r#"binding="jsonrpc",dialect="1.0",outcome="ok""#), Some(3.0), "{page}");
    assert_eq!(requests(r#"binding="jsonrpc",dialect="1.0",outcome="internal_error""#), Some(0.0));
    assert_eq!(requests(r#"binding="jsonrpc",dialect="0.3",outcome="client_error""#), Some(1.0));
    assert_eq!(requests(r#"binding="http_json",dialect="1.0",outcome="client_error""#), Some(1.0));
    assert_eq!(value(&page, r#"a2ad_request_duration_seconds_count{binding="jsonrpc"}"#), Some(4.0));
    assert_eq!(value(&page, r#"a2ad_http_requests_total{handler="metrics"}"#), Some(1.0));
    assert_eq!(value(&page, r#"a2ad_runs_total{outcome="completed"}"#), Some(3.0));
    assert_eq!(value(&page, "a2ad_run_duration_seconds_count"), Some(3.0));
    assert_eq!(value(&page, "a2ad_commit_changes_sum"), Some(3.0));
    assert!(value(&page, "a2ad_commit_duration_seconds_count") >= Some(1.0), "{page}");
    assert!(value(&page, "a2ad_store_bytes") > Some(0.0) && value(&page, "a2ad_disk_free_bytes") > Some(0.0));
    assert!(value(&page, "process_resident_memory_bytes") > Some(1e6), "{page}");
    assert!(value(&page, "process_open_fds") > Some(3.0), "{page}");
    assert!(value(&page, "a2ad_connections_accepted_total") >= Some(6.0), "{page}");
}

#[tokio::test]
async fn tasks_runs_and_streams_are_counted_while_they_last() {
    let server = Server::open().await;
    let task = server.hold().await;
    let stream = server.stream("echo", "SubscribeToTask", &format!(r#"{{"id":"{task}"}}"#)).await;
    reaches(&server, r#"a2ad_stream_events_total{binding="jsonrpc"}"#, 1.0).await;
    let during = page(&server).await;
    assert_eq!(value(&during, r#"a2ad_streams{binding="jsonrpc"}"#), Some(1.0));
    assert_eq!(value(&during, r#"a2ad_tasks{state="working"}"#), Some(1.0));
    assert_eq!(value(&during, "a2ad_runs"), Some(1.0));
    assert!(value(&during, "a2ad_connections") >= Some(2.0));
    drop(stream);
    reaches(&server, r#"a2ad_streams{binding="jsonrpc"}"#, 0.0).await;
    server.call("echo", "CancelTask", &format!(r#"{{"id":"{task}"}}"#)).await;
    reaches(&server, r#"a2ad_runs_total{outcome="canceled"}"#, 1.0).await;
    let after = page(&server).await;
    assert_eq!(value(&after, r#"a2ad_tasks{state="working"}"#), Some(0.0));
    assert_eq!(value(&after, r#"a2ad_tasks{state="canceled"}"#), Some(1.0));
    assert_eq!(value(&after, r#"a2ad_tasks_finished_total{state="canceled"}"#), Some(1.0));
    assert_eq!(value(&after, "a2ad_runs"), Some(0.0));
}

#[tokio::test]
async fn clients_that_name_it_get_open_metrics() {
    let server = Server::open().await;
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    let answer = get(&server, &format!("\r\naccept: {accept}")).await;
    assert_eq!(
        answer.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    assert!(answer.body.ends_with("# EOF\n"), "{answer:?}");
}

#[tokio::test]
async fn only_operators_read_metrics_through_a_proxy() {
    let mut setup = Setup::default();
    setup.options.auth = AuthOptions { admin_token: Some(Secret::new(ADMIN)), ..AuthOptions::default() };
    let server = setup.open().await;
    assert_eq!(get(&server, "").await.status, 200);
    let headers = ["x-forwarded-for: 192.0.2.1", "forwarded: for=192.0.2.1", "via: 1.1 proxy"];
    for header in headers {
        let refused = get(&server, &format!("\r\n{header}")).await;
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")), "{header}");
        let allowed = get(&server, &format!("\r\n{header}\r\nauthorization: Bearer {ADMIN}")).await;
        assert_eq!(allowed.status, 200, "{header}");
    }
    // A public name of the server.
    assert_eq!(server.get("/metrics").await.status, 401);
    // Without an admin token nobody is an operator.
    let server = Server::open().await;
    let refused = get(&server, "\r\nvia: 1.1 proxy").await;
    assert_eq!(refused.status, 404, "{refused:?}");
}
