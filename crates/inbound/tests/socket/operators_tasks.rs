//! The operators' API: `/console/api/tasks` and `/console/api/counts`.

use crate::{
    common::{Server, Setup, member, request, send_params, with_timeout},
    operators::{ADMIN, refused, send},
};
use a2ad_inbound::AuthOptions;
use protocol::model::Secret;

const TASKS: &str = "/console/api/tasks";

/// Callers name themselves in the header `test-caller`.
async fn open() -> Server {
    let mut setup = Setup::default();
    setup.options.auth = AuthOptions { admin_token: Some(Secret::new(ADMIN)), ..AuthOptions::default() };
    setup.open_with_callers().await
}

/// Sends a message as a caller; returns the id of its task.
async fn start(server: &Server, caller: &str, agent: &str, text: &str) -> String {
    let head =
        format!("POST /a2a/{agent} HTTP/1.1\r\ncontent-type: application/json\r\ntest-caller: {caller}");
    let params = match text {
        // Waits until it is cancelled.
        "hold" | "hold this" => {
            send_params(text, "").replace("]}}", r#"]},"configuration":{"returnImmediately":true}}"#)
        }
        _ => send_params(text, ""),
    };
    let body = request("SendMessage", &params);
    member(&server.exchange(&head, &body).await.body, "id")
}

fn ids(body: &str) -> Vec<String> {
    body.split(r#"{"id":""#).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn tasks_of_all_owners_are_listed_newest_first() {
    let server = open().await;
    let first = start(&server, "alice", "approver", "one").await;
    let second = start(&server, "bob", "echo", "hold").await;
    let third = start(&server, "alice", "echo", "hold").await;
    let list = async |query: &str| send(&server, "GET", &format!("{TASKS}{query}"), "").await.body;
    assert_eq!(ids(&list("").await), [&*third, &second, &first]);
    assert_eq!(ids(&list("?owner=alice").await), [&*third, &first]);
    assert_eq!(ids(&list("?agent=echo").await), [&*third, &second]);
    assert_eq!(ids(&list("?agent=echo&owner=bob").await), [&*second]);
    server.engine.flush().await.unwrap();
    for (state, expected) in [("input-required", vec![&*first]), ("completed", vec![])] {
        assert_eq!(ids(&list(&format!("?state={state}")).await), expected, "{state}");
    }
    assert_eq!(ids(&list("?state=TASK_STATE_INPUT_REQUIRED").await), [&*first]);
    assert_eq!(ids(&list("?since=2026-01-02T03:04:06Z").await), [""; 0]);
    assert_eq!(ids(&list("?since=2026-01-02T03:04:05Z").await).len(), 3);
    // The content of a task is not in a list.
    assert!(!list("").await.contains("hold"));

    let mut seen = Vec::new();
    let mut token = String::new();
    for _ in 0..3 {
        let page = list(&format!("?pageSize=1{token}")).await;
        seen.extend(ids(&page));
        token = if page.contains("nextPageToken") {
            format!("&pageToken={}", member(&page, "nextPageToken"))
        } else {
            String::new()
        };
    }
    assert_eq!((seen, token), (vec![third, second, first], String::new()));
}

#[tokio::test]
async fn work_of_all_owners_is_found_by_its_state() {
    let server = open().await;
    let held = start(&server, "alice", "echo", "hold").await;
    let working = send(&server, "GET", &format!("{TASKS}?state=working"), "").await;
    let submitted = send(&server, "GET", &format!("{TASKS}?state=submitted"), "").await;
    assert_eq!([ids(&working.body), ids(&submitted.body)].concat(), [held]);
    let counts = send(&server, "GET", "/console/api/counts", "").await.body;
    assert!(counts.contains(r#""complete":true,"queued":0,"running":1,"streams":0}"#), "{counts}");
    assert!(counts.contains(r#"{"agents":[{"id":"echo","tasks":{"#), "{counts}");
}

#[tokio::test]
async fn a_task_of_any_owner_is_shown_and_cancelled() {
    let server = open().await;
    let id = start(&server, "alice", "echo", "hold this").await;
    let shown = send(&server, "GET", &format!("{TASKS}/{id}"), "").await;
    assert_eq!(shown.status, 200);
    assert_eq!((member(&shown.body, "id"), member(&shown.body, "owner")), (id.clone(), "alice".to_owned()));
    for text in [r#""attempts":1"#, r#""origin":"1.0""#, r#""task":{"id":""#, "hold this"] {
        assert!(shown.body.contains(text), "{text} is not in {shown:?}");
    }
    let cancelled = send(&server, "POST", &format!("{TASKS}/{id}/cancel"), "").await;
    assert_eq!((cancelled.status, member(&cancelled.body, "state")), (200, "canceled".to_owned()));
    let again = send(&server, "POST", &format!("{TASKS}/{id}/cancel"), "").await;
    refused(&again, 400, "TASK_NOT_CANCELABLE", &[]);
    // Its owner sees the same.
    let head = "POST /a2a/echo HTTP/1.1\r\ncontent-type: application/json\r\ntest-caller: alice";
    let body = request("GetTask", &format!(r#"{{"id":"{id}"}}"#));
    let seen = server.exchange(head, &body).await;
    assert!(seen.body.contains("TASK_STATE_CANCELED"), "{seen:?}");
}

#[tokio::test]
async fn requests_that_cannot_be_used_name_what_is_wrong() {
    let server = open().await;
    for (query, text) in [
        ("?state=done", "state: expected one of submitted, working, completed"),
        ("?since=yesterday", "since: expected a time such as"),
        ("?pageSize=0", "pageSize: expected a number from 1 to 100"),
        ("?pageSize=101", "pageSize: expected"),
        ("?pageToken=x", "pageToken: expected a nextPageToken"),
        ("?status=working", "status: unknown parameter; the parameters are agent, state"),
    ] {
        refused(&send(&server, "GET", &format!("{TASKS}{query}"), "").await, 400, "INVALID_PARAMS", &[text]);
    }
    for id in ["unknown", "task_0000000000000000000000000000000", "%ff", "a/b"] {
        refused(&send(&server, "GET", &format!("{TASKS}/{id}"), "").await, 404, "TASK_NOT_FOUND", &[]);
    }
    let answer = send(&server, "POST", &format!("{TASKS}/unknown/cancel"), "").await;
    refused(&answer, 404, "TASK_NOT_FOUND", &[]);
}

#[tokio::test]
async fn page_tokens_are_valid_for_their_filter_only() {
    let server = open().await;
    for _ in 0..2 {
        start(&server, "alice", "approver", "hello").await;
    }
    let page = send(&server, "GET", &format!("{TASKS}?pageSize=1"), "").await;
    let token = member(&page.body, "nextPageToken");
    let other = send(&server, "GET", &format!("{TASKS}?pageSize=1&owner=alice&pageToken={token}"), "").await;
    refused(&other, 400, "INVALID_PARAMS", &["pageToken: expected a nextPageToken of the same filters"]);
    // A token of an operator is none of a caller.
    let head = "POST /a2a/approver HTTP/1.1\r\ncontent-type: application/json\r\ntest-caller: alice";
    let body = request("ListTasks", &format!(r#"{{"pageToken":"{token}"}}"#));
    assert!(server.exchange(head, &body).await.body.contains("pageToken"));
}

#[tokio::test]
async fn open_streams_are_counted_until_they_end() {
    let server = open().await;
    let hold = request("SendStreamingMessage", &send_params("hold", ""));
    let head = "POST /a2a/echo HTTP/1.1\r\na2a-version: 1.0";
    let streams = async || {
        let counts = send(&server, "GET", "/console/api/counts", "").await.body;
        counts.split(r#""streams":"#).nth(1).unwrap().trim_end_matches('}').to_owned()
    };
    let (first, _) = server.open_stream(head, &hold).await;
    let (_second, _) = server.open_stream(head, &hold).await;
    assert_eq!(streams().await, "2");
    drop(first);
    with_timeout(async { while streams().await != "1" {} }).await;
}

/// An application has its own backends and configuration.
#[tokio::test]
async fn a_server_without_reports_has_no_backends_and_no_configuration() {
    let server = open().await;
    assert_eq!(send(&server, "GET", "/console/api/backends", "").await.body, r#"{"backends":[]}"#);
    refused(&send(&server, "GET", "/console/api/config", "").await, 404, "NOT_FOUND", &["application"]);
    for path in ["/console/api/backends?x=1", "/console/api/config?x=1"] {
        refused(&send(&server, "GET", path, "").await, 400, "INVALID_PARAMS", &["unknown parameter"]);
    }
}
