//! Server-sent events without an envelope.

use engine::{Store as _, store::FinishedTask};
use protocol::Timestamp;

use super::{NOT_FOUND, Rest, RestVersion, UNSUPPORTED};
use crate::common::{NOW, Server, Setup, Wire, agents::floods, mask, member, send_params};

/// Opens a stream.
async fn open(server: &Server, head: &str, body: &str) -> Wire {
    let (wire, head) = server.open_stream(head, body).await;
    assert_eq!(head.header("cache-control"), Some("no-cache"));
    wire
}

#[tokio::test]
async fn frames_equal_those_of_json_rpc_without_the_envelope() {
    let server = Server::open().await;
    let mut by_rpc = server.stream("echo", "SendStreamingMessage", &send_params("hi", "")).await;
    let head = server.rest(RestVersion::V1).head("POST", "/message:stream");
    let mut by_rest = open(&server, &head, &send_params("hi", "")).await;
    let bare = |event: &String| {
        let event = event.replace(r#"{"jsonrpc":"2.0","id":1,"result":"#, "");
        mask(&event.replace("}\n\n", "\n\n"))
    };
    let expected: Vec<String> = by_rpc.events().await.iter().map(bare).collect();
    let events: Vec<String> = by_rest.events().await.iter().map(|event| mask(event)).collect();
    assert_eq!(events, expected);
    assert_eq!(events.len(), 4);
    assert!(events[0].starts_with("id: 1\ndata: {\"task\":{\"id\":\"TASK\""), "{}", events[0]);
    // The connection can be used for another request.
    by_rest.send("GET /tasks HTTP/1.1", "").await;
    assert_eq!(by_rest.answer().await.status, 200);
}

#[tokio::test]
async fn frames_of_0_3_mark_the_final_one() {
    let server = Server::open().await;
    let head = server.rest(RestVersion::V03).head("POST", "/message:stream");
    let mut wire = open(&server, &head, &RestVersion::V03.send_body("hi", "")).await;
    let events: Vec<String> = wire.events().await.iter().map(|event| mask(event)).collect();
    let status = |state: &str, last: &str| {
        format!(
            r#"{{"statusUpdate":{{"taskId":"TASK","contextId":"CTX","status":{{"state":"TASK_STATE_{state}","timestamp":"{NOW}"}}{last}}}}}"#
        )
    };
    assert!(events[0].contains(r#""content":[{"text":"hi"}]"#), "{}", events[0]);
    assert_eq!(events[1], format!("id: 2\ndata: {}\n\n", status("WORKING", "")));
    assert!(events[2].contains(r#"data: {"artifactUpdate":{"#), "{}", events[2]);
    assert_eq!(events[3..], [format!("id: 4\ndata: {}\n\n", status("COMPLETED", r#","final":true"#))]);
}

#[tokio::test]
async fn subscription_accepts_get_and_post_and_is_resumable() {
    let server = Server::open().await;
    for version in RestVersion::BOTH {
        let rest = server.rest(version);
        let held = rest.done("POST", "/message:send", &version.send_body_without_waiting("hold")).await;
        let id = member(&held, "id");
        let path = format!("/tasks/{id}:subscribe");
        let mut watchers = Vec::new();
        for (verb, body) in [("GET", ""), ("POST", ""), ("POST", "{}")] {
            let mut wire = open(&server, &rest.head(verb, &path), body).await;
            let first = wire.event().await.unwrap();
            assert!(first.starts_with("id: 2\ndata: {\"task\":{"), "{first}");
            watchers.push(wire);
        }
        rest.done("POST", &format!("/tasks/{id}:cancel"), "").await;
        for mut wire in watchers {
            let last = wire.event().await.unwrap();
            assert!(
                last.starts_with("id: 3\ndata: {\"statusUpdate\":")
                    && last.contains(version.canceled_state()),
                "{last}"
            );
            assert_eq!(wire.event().await, None);
        }
        let again = rest.head("GET", &path) + "\r\nlast-event-id: 1";
        let events = open(&server, &again, "").await.events().await;
        let numbers: Vec<&str> = events.iter().map(|event| event.split('\n').next().unwrap()).collect();
        assert_eq!(numbers, ["id: 1", "id: 2", "id: 3"]);
        assert!(
            events[0].contains("TASK_STATE_SUBMITTED"),
            "the status of the event it is resumed from: {events:?}"
        );
        // The task is finished: 1.0 responds with an error, 0.3 repeats the final event.
        if version == RestVersion::V1 {
            rest.refused("GET", &path, "", UNSUPPORTED).await;
        } else {
            let events = open(&server, &rest.head("GET", &path), "").await.events().await;
            assert!(events.len() == 1 && events[0].contains(r#""final":true"#), "{events:?}");
        }
    }
}

#[tokio::test]
async fn error_is_a_plain_response_with_its_status() {
    let server = Server::open().await;
    for version in RestVersion::BOTH {
        let rest = server.rest(version);
        for verb in ["GET", "POST"] {
            rest.refused(verb, "/tasks/x:subscribe", "", NOT_FOUND).await;
        }
        // Also if the client accepts only events.
        let head = rest.head("GET", "/tasks/x:subscribe") + "\r\naccept: text/event-stream";
        let answer = server.exchange(&head, "").await;
        assert_eq!((answer.status, answer.header("content-type")), (404, Some(version.media_type())));
    }
}

/// The task is purged while a slow reader still has most of its log to read.
#[tokio::test]
async fn error_in_a_stream_is_an_event_named_error() {
    for version in RestVersion::BOTH {
        let server = Setup { agents: vec![floods()], ..Setup::default() }.open().await;
        let rest = Rest { at: "/a2a/floods", ..server.rest(version) };
        let sent = rest.done("POST", "/message:send", &version.send_body("go", "")).await;
        let id = member(&sent, "id");
        let head = rest.head("GET", &format!("/tasks/{id}:subscribe")) + "\r\nlast-event-id: 1";
        let mut wire = open(&server, &head, "").await;
        assert!(wire.event().await.unwrap().starts_with("id: 1\ndata: {\"task\":"));
        let no = server.store.ids().parse_task(&id.as_str().into()).unwrap().0;
        let ended = FinishedTask { no, last_seq: 1_503 };
        let now = Timestamp::parse(NOW).unwrap();
        assert_eq!(server.store.purge(vec![ended], now).await.unwrap(), 1);
        let events = wire.events().await;
        let last = events.last().unwrap();
        let start = match version {
            RestVersion::V1 => r#"{"error":{"code":404,"status":"NOT_FOUND","message":""#,
            RestVersion::V03 => r#"{"code":-32001,"message":"Task not found"#,
        };
        assert!(last.starts_with(&format!("event: error\ndata: {start}")), "{last}");
        assert!(events[..events.len() - 1].iter().all(|event| event.starts_with("id: ")));
    }
}
