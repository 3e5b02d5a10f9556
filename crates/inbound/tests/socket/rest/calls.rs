//! The response of each operation.

use super::{INVALID, NOT_CANCELABLE, Rest, RestVersion, UNSUPPORTED};
use crate::common::{NOW, Server, Setup, agents::paced, mask, member, send_params};

fn completed(version: RestVersion, text: &str) -> String {
    let parts = if version == RestVersion::V1 { "parts" } else { "content" };
    format!(
        r#"{{"id":"TASK","contextId":"CTX","status":{{"state":"TASK_STATE_COMPLETED","timestamp":"{NOW}"}},"artifacts":[{{"artifactId":"echo-result","name":"echo-result","parts":[{{"text":"{text}"}}]}}],"history":[{{"messageId":"m","contextId":"CTX","taskId":"TASK","role":"ROLE_USER","{parts}":[{{"text":"{text}"}}]}}]}}"#
    )
}

#[tokio::test]
async fn message_is_sent_and_its_task_is_read() {
    let server = Server::open().await;
    for version in RestVersion::BOTH {
        let rest = server.rest(version);
        let sent = rest.done("POST", "/message:send", &version.send_body("hi", "")).await;
        assert_eq!(mask(&sent), format!(r#"{{"task":{}}}"#, completed(version, "hi")));
        let id = member(&sent, "id");
        let got = rest.done("GET", &format!("/tasks/{id}"), "").await;
        assert_eq!(mask(&got), completed(version, "hi"));
        rest.refused("POST", &format!("/tasks/{id}:cancel"), "", NOT_CANCELABLE).await;
        let more = version.send_body("more", &format!(r#","taskId":"{id}""#));
        rest.refused("POST", "/message:send", &more, UNSUPPORTED).await;
    }
}

#[tokio::test]
async fn history_length_in_the_query_limits_the_history() {
    let server = Server::open().await;
    for (version, none) in [(RestVersion::V1, false), (RestVersion::V03, true)] {
        let rest = server.rest(version);
        let sent = rest.done("POST", "/message:send", &version.send_body("hi", "")).await;
        let id = member(&sent, "id");
        for (query, shown) in [
            ("", true),
            ("?historyLength=1", true),
            ("?history_length=1", true),
            ("?historyLength=", true),
            // Before 1.0, zero meant no limit.
            ("?historyLength=0", none),
            ("?history_length=0", none),
            ("?historyLength=1&historyLength=0", none),
        ] {
            let got = rest.done("GET", &format!("/tasks/{id}{query}"), "").await;
            assert_eq!(got.contains("\"history\""), shown, "{version:?} {query}");
        }
    }
}

#[tokio::test]
async fn list_is_filtered_by_the_query() {
    let server = Server::open().await;
    for version in RestVersion::BOTH {
        let rest = server.rest(version);
        let held = rest.done("POST", "/message:send", &version.send_body_without_waiting("hold")).await;
        let (id, context) = (member(&held, "id"), member(&held, "contextId"));
        rest.done("POST", "/message:send", &version.send_body("hi", "")).await;
        let count = async |query: &str| {
            let page = rest.done("GET", &format!("/tasks?contextId={context}&{query}"), "").await;
            assert!(page.starts_with(r#"{"tasks":["#) && page.contains(r#""nextPageToken":"""#), "{page}");
            page.matches(&format!("\"id\":\"{id}\"")).count()
        };
        for one in [
            "",
            "status=TASK_STATE_WORKING",
            "status=2",
            "status=TASK_STATE_UNSPECIFIED",
            "page_size=1",
            "includeArtifacts=true",
            "include_artifacts=false",
            "statusTimestampAfter=2026-01-02T03:04:05Z",
            "statusTimestampAfter=2026-01-02T04:04:05+01:00",
            "statusTimestampAfter=2026-01-02T04:04:05%2B01:00",
            "statusTimestampAfter=2026-01-02T04%3A04%3A05%2B01%3A00",
            "status_timestamp_after=2026-01-02t03:04:05.678z",
            "unknown=1&&=&A2A-Version=",
        ] {
            assert_eq!(count(one).await, 1, "{version:?} {one}");
        }
        for none in [
            "status=3",
            "status=TASK_STATE_COMPLETED",
            "statusTimestampAfter=2026-01-02T03:04:05%2B00:00&statusTimestampAfter=2027-01-01T00:00:00Z",
        ] {
            assert_eq!(count(none).await, 0, "{version:?} {none}");
        }
        rest.done("POST", &format!("/tasks/{id}:cancel"), "").await;
    }
}

#[tokio::test]
async fn page_token_leads_to_the_next_page() {
    let server = Server::open().await;
    let rest = server.rest(RestVersion::V1);
    for _ in 0..5 {
        rest.done("POST", "/message:send", &RestVersion::V1.send_body("hi", "")).await;
    }
    let (mut token, mut seen) = (String::new(), Vec::new());
    loop {
        let page = rest.done("GET", &format!("/tasks?pageSize=2&pageToken={token}"), "").await;
        assert!(page.contains(r#""pageSize":2,"totalSize":5"#) && !page.contains("artifacts"), "{page}");
        seen.extend(page.split(r#"{"id":""#).skip(1).map(|task| task[..34].to_owned()));
        token = member(&page, "nextPageToken");
        if token.is_empty() {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 5);
}

#[tokio::test]
async fn cancel_accepts_any_body_or_none() {
    let server = Server::open().await;
    for (version, bodies) in [
        (
            RestVersion::V1,
            &["", "{}", "null", r#"{"metadata":{"why":"enough"}}"#, r#"{"id":"ID","tenant":""}"#][..],
        ),
        // Bodies that clients of 0.3 send or might send.
        (RestVersion::V03, &["", "{}", "null", r#"{"name":"tasks/ID"}"#, "[]"][..]),
    ] {
        let rest = server.rest(version);
        for body in bodies {
            let held = rest.done("POST", "/message:send", &version.send_body_without_waiting("hold")).await;
            let id = member(&held, "id");
            let path = format!("/tasks/{id}:cancel");
            let canceled_state = rest.done("POST", &path, &body.replace("ID", &id)).await;
            assert!(canceled_state.starts_with(&format!(r#"{{"id":"{id}""#)), "{canceled_state}");
            assert!(canceled_state.contains(version.canceled_state()), "{canceled_state}");
            rest.refused("POST", &path, "", NOT_CANCELABLE).await;
        }
    }
    // The content type of an absent body is ignored.
    let rest = server.rest(RestVersion::V1);
    let held = rest.done("POST", "/message:send", &RestVersion::V1.send_body_without_waiting("hold")).await;
    let head = rest.head("POST", &format!("/tasks/{}:cancel", member(&held, "id")));
    let form = format!("{head}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 0");
    assert_eq!(server.exchange(&form, "").await.status, 200);
}

#[tokio::test]
async fn repeated_message_is_replayed() {
    let server = Server::open().await;
    let key = "\r\nidempotency-key: once";
    let mut tasks = Vec::new();
    for (at, version) in [RestVersion::V1, RestVersion::V03, RestVersion::V1].into_iter().enumerate() {
        let rest = server.rest(version);
        let head = rest.head("POST", "/message:send") + key;
        let answer = server.exchange(&head, &version.send_body("hi", "")).await;
        assert_eq!(answer.header("a2ad-replayed"), (at > 0).then_some("true"));
        tasks.push(member(&answer.body, "id"));
    }
    tasks.dedup();
    assert_eq!(tasks.len(), 1);
    let head = server.rest(RestVersion::V1).head("POST", "/message:send") + key;
    let other = server.exchange(&head, &RestVersion::V1.send_body("something else", "")).await;
    assert_eq!(other.status, 409, "{}", other.body);
    assert!(other.body.contains(r#""status":"ALREADY_EXISTS""#), "{}", other.body);
}

/// The official clients of 0.3 omit `blocking` from the JSON if it is false.
#[tokio::test]
async fn v03_configuration_without_blocking_returns_immediately() {
    let (agent, pace) = paced();
    let server = Setup { agents: vec![agent], ..Setup::default() }.open().await;
    let rest = Rest { at: "/a2a/paced", ..server.rest(RestVersion::V03) };
    let sent = async |configuration: &str| {
        let body = RestVersion::V03.send_body("go", "").replace("]}}", &format!("]}}{configuration}}}"));
        member(&rest.done("POST", "/message:send", &body).await, "state")
    };
    for configuration in [
        r#","configuration":{}"#,
        r#","configuration":{"blocking":false}"#,
        r#","configuration":{"acceptedOutputModes":["text/plain"]}"#,
        r#","configuration":{"historyLength":3,"blocking":null}"#,
    ] {
        assert_eq!(sent(configuration).await, "TASK_STATE_WORKING", "{configuration}");
    }
    pace.add_permits(1_000);
    for configuration in ["", r#","configuration":null"#, r#","configuration":{"blocking":true}"#] {
        assert_eq!(sent(configuration).await, "TASK_STATE_COMPLETED", "{configuration}");
    }
}

/// The JavaScript SDK sends this value for a filter that is not set.
#[tokio::test]
async fn unrecognized_status_filter_is_ignored() {
    let server = Server::open().await;
    server.call("echo", "SendMessage", &send_params("hi", "")).await;
    for version in RestVersion::BOTH {
        let page = server.rest(version).done("GET", "/tasks?status=UNRECOGNIZED", "").await;
        assert!(page.contains(r#""totalSize":1"#), "{page}");
        server.rest(version).refused("GET", "/tasks?status=unrecognized", "", INVALID).await;
    }
    let page = server.call("echo", "ListTasks", r#"{"status":"UNRECOGNIZED"}"#).await.body;
    assert!(page.contains(r#""totalSize":1"#), "{page}");
}
