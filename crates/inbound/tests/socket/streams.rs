//! Server-sent events of 1.0, byte for byte.

use std::time::Duration;

use crate::common::{NOW, Server, Setup, hold_time, mask, member, request, send_params};

/// An event with its id.
fn event(number: u64, result: &str) -> String {
    format!("id: {number}\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}\n\n")
}

fn status_update(state: &str) -> String {
    format!(
        r#"{{"statusUpdate":{{"taskId":"TASK","contextId":"CTX","status":{{"state":"TASK_STATE_{state}","timestamp":"{NOW}"}}}}}}"#
    )
}

fn task(state: &str, text: &str) -> String {
    format!(
        r#"{{"task":{{"id":"TASK","contextId":"CTX","status":{{"state":"TASK_STATE_{state}","timestamp":"{NOW}"}},"history":[{{"messageId":"m","contextId":"CTX","taskId":"TASK","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}]}}}}"#
    )
}

#[tokio::test]
async fn stream_has_events_with_ids_of_one_line_each() {
    let server = Server::open().await;
    let body = request("SendStreamingMessage", &send_params("hi", ""));
    let (mut wire, head) = server.open_stream("POST / HTTP/1.1", &body).await;
    assert_eq!(head.header("cache-control"), Some("no-cache"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    let events: Vec<_> = wire.events().await.iter().map(|event| mask(event)).collect();
    let artifact = r#"{"artifactUpdate":{"taskId":"TASK","contextId":"CTX","artifact":{"artifactId":"echo-result","name":"echo-result","parts":[{"text":"hi"}]},"lastChunk":true}}"#;
    assert_eq!(
        events,
        [
            event(1, &task("SUBMITTED", "hi")),
            event(2, &status_update("WORKING")),
            event(3, artifact),
            event(4, &status_update("COMPLETED")),
        ]
    );
    // The connection can be used for another request.
    wire.send("POST / HTTP/1.1", &request("ListTasks", "{}")).await;
    assert_eq!(wire.answer().await.status, 200);
}

#[tokio::test]
async fn text_with_line_breaks_stays_on_one_line() {
    let server = Server::open().await;
    let mut wire = server.stream("echo", "SendStreamingMessage", &send_params(r"a\nb\r\nc\n\nd", "")).await;
    let events = wire.events().await;
    assert_eq!(events.len(), 4);
    for event in events {
        assert_eq!(event.matches('\n').count(), 3, "{event:?}");
        assert!(!event.contains('\r'));
    }
}

#[tokio::test]
async fn subscriber_gets_the_task_and_its_final_status() {
    let server = Server::open().await;
    let id = server.hold().await;
    let params = format!(r#"{{"id":"{id}"}}"#);
    let mut first = server.stream("echo", "SubscribeToTask", &params).await;
    let mut second = server.stream("echo", "SubscribeToTask", &params).await;
    let snapshot = event(2, &task("WORKING", "hold"));
    assert_eq!(mask(&first.event().await.unwrap()), snapshot);
    drop(first);
    assert_eq!(mask(&second.event().await.unwrap()), snapshot);
    server.call("echo", "CancelTask", &params).await;
    assert_eq!(mask(&second.event().await.unwrap()), event(3, &status_update("CANCELED")));
    assert_eq!(second.event().await, None);
}

#[tokio::test]
async fn interrupted_stream_resumes_after_the_last_event() {
    let server = Server::open().await;
    let mut wire = server.stream("echo", "SendStreamingMessage", &send_params("hi", "")).await;
    let whole = wire.events().await;
    let id = member(&whole[0], "id");
    let body = request("SubscribeToTask", &format!(r#"{{"id":"{id}"}}"#));
    let mut again = server.connect().await;
    again.send("POST /a2a/echo HTTP/1.1\r\nlast-event-id: 2", &body).await;
    assert_eq!(again.head().await.status, 200);
    let events = again.events().await;
    assert!(
        events[0].starts_with("id: 2\ndata: ") && events[0].contains("TASK_STATE_WORKING"),
        "{}",
        events[0]
    );
    assert!(!events[0].contains("artifacts") && !events[0].contains("history"), "{}", events[0]);
    assert_eq!(events[1..], whole[2..]);
}

#[tokio::test]
async fn error_is_a_plain_response() {
    let server = Server::open().await;
    for (method, params) in
        [("SubscribeToTask", r#"{"id":"x"}"#.to_owned()), ("SendStreamingMessage", "{}".to_owned())]
    {
        let answer = server.call("echo", method, &params).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        assert!(answer.body.contains("\"error\""));
    }
}

#[tokio::test(start_paused = true)]
async fn idle_stream_sends_keep_alive_comments() {
    let _time = hold_time();
    let server = Setup::with(|options| options.keep_alive = Duration::from_secs(15)).open().await;
    let id = server.hold().await;
    let mut wire = server.stream("echo", "SubscribeToTask", &format!(r#"{{"id":"{id}"}}"#)).await;
    assert!(wire.event().await.unwrap().starts_with("id: 2\n"));
    for _ in 0..3 {
        let mut seconds = 0;
        let comment = loop {
            tokio::select! {
                biased;
                comment = wire.event() => break comment.unwrap(),
                () = tokio::time::advance(Duration::from_secs(1)) => seconds += 1,
            }
        };
        assert_eq!(comment, ":\n");
        assert!((13..=30).contains(&seconds), "{seconds}");
    }
    server.call("echo", "CancelTask", &format!(r#"{{"id":"{id}"}}"#)).await;
    // A blank line after a comment would appear here, before the next event.
    let last = wire.event().await.unwrap();
    assert!(last.starts_with("id: 3\n") && last.contains("TASK_STATE_CANCELED"), "{last}");
    assert_eq!(wire.event().await, None);
}
