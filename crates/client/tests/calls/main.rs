//! The client against a scripted server on a loopback socket.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod dialects;
mod discovery;
mod follow;
mod hostile_cards;
mod http2;
mod operations;
mod scripted_agent;

use std::time::Duration;

use a2ad_client::{Client, ClientOptions, Error, SendReply};
use http::StatusCode;
use protocol::{Dialect, ErrorKind, Event, Message, Part, Role, SendMessage, TaskState};
use scripted_agent::{ScriptedAgent, events, json, response};

const TASK: &str = r#"{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_WORKING"}}"#;

#[tokio::test]
async fn call_is_one_post_with_a_decoded_reply() {
    let agent =
        ScriptedAgent::start(|_| vec![json(&result(TASK)), json(&result(&format!(r#"{{"task":{TASK}}}"#)))]);
    let client = Client::connect(&agent.url("/rpc?x=1")).unwrap();
    let task = client.get_task("t-1").await.unwrap();
    assert_eq!(task.status.state, TaskState::Working);
    assert_eq!(client.send(send()).await.unwrap(), SendReply::Task(task));

    let requests = agent.requests();
    assert_eq!(requests[0].line, "POST /rpc?x=1 HTTP/1.1");
    assert_eq!(requests[0].header("a2a-version"), Some("1.0"));
    assert_eq!(requests[0].header("content-type"), Some("application/json"));
    assert_eq!(requests[0].header("accept"), Some("application/json"));
    assert_eq!(requests[0].body, r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t-1"}}"#);
    assert!(
        requests[1]
            .body
            .starts_with(r#"{"jsonrpc":"2.0","id":2,"method":"SendMessage","params":{"message":"#)
    );
}

#[tokio::test]
async fn error_object_is_read_with_any_status() {
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"task not found: t-1"}}"#;
    let agent =
        ScriptedAgent::start(|_| vec![json(body), response("404 Not Found", "application/json", body)]);
    let client = Client::connect(&agent.url("/")).unwrap();
    for _ in 0..2 {
        let outcome = client.get_task("t-1").await;
        let Err(Error::Protocol(error)) = outcome else { panic!("{outcome:?}") };
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::TaskNotFound, "task not found: t-1"));
    }
}

#[tokio::test]
async fn status_without_a_protocol_response_is_reported() {
    let agent = ScriptedAgent::start(|_| {
        vec![
            response("502 Bad Gateway", "text/html", "<html>no</html>"),
            response("302 Found\r\nlocation: https://new.example/", "text/plain", ""),
            response("401 Unauthorized", "text/plain", "who?"),
        ]
    });
    let client = Client::connect(&agent.url("/")).unwrap();
    let outcome = client.get_task("t-1").await;
    assert!(matches!(outcome, Err(Error::Status(StatusCode::BAD_GATEWAY))), "{outcome:?}");
    let outcome = client.get_task("t-1").await;
    assert!(matches!(&outcome, Err(Error::Redirected { location }) if location == "https://new.example/"));
    let error = error_of(client.subscribe("t-1").await);
    assert!(matches!(error, Error::Status(StatusCode::UNAUTHORIZED)), "{error:?}");
}

#[tokio::test]
async fn invalid_response_names_the_field() {
    let agent = ScriptedAgent::start(|_| vec![json("hello"), json(&result(r#"{"id":"t-1"}"#))]);
    let client = Client::connect(&agent.url("/")).unwrap();
    for expected in ["expected JSON", "result.status: required, expected a task status"] {
        let error = client.get_task("t-1").await.unwrap_err();
        assert!(matches!(error, Error::Malformed(_)), "{error:?}");
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}

#[tokio::test]
async fn oversized_response_is_rejected() {
    let agent =
        ScriptedAgent::start(|_| vec![json(&result(&" ".repeat(2_000))), events(&[&"x".repeat(2_000)])]);
    let options = ClientOptions::default().with_max_response_bytes(1_000).with_max_event_bytes(1_001);
    let client = Client::connect_with(&agent.url("/"), options).unwrap();
    let error = client.get_task("t-1").await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit_bytes: 1_000 }), "{error:?}");
    let error = client.subscribe("t-1").await.unwrap().next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit_bytes: 1_001 }), "{error:?}");
}

#[tokio::test]
async fn stream_events_have_sequence_numbers() {
    let working =
        r#"{"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"taskId":"t-1","status":{"state":2}}}}"#;
    let agent = ScriptedAgent::start(|_| {
        let task = result(&format!(r#"{{"task":{TASK}}}"#));
        vec![events(&[
            "\u{feff}: hello\r\n\r\nid: 4\r\n",
            &format!("data: {task}\r\n\r"),
            &format!("\nevent: message\nid: 5\ndata: {}\nda", &working[..24]),
            &format!("ta: {}\n\n: alive\n\n", &working[24..]),
            &format!("data: {working}\n\nretry: 1500\n\n"),
        ])]
    });
    let client = Client::connect(&agent.url("/")).unwrap();
    let mut stream = client.stream(send()).await.unwrap();
    assert_eq!(stream.last_event_id(), None);
    let Some(Ok(Event::Task(task))) = stream.next().await else { panic!("expected a task") };
    assert_eq!((stream.last_event_id(), task.id.as_str()), (Some(4), "t-1"));
    for expected in [Some(5), None] {
        let Some(Ok(Event::Status(update))) = stream.next().await else { panic!("expected a status") };
        assert_eq!((stream.last_event_id(), update.status.state), (expected, TaskState::Working));
    }
    assert!(stream.next().await.is_none());
    assert!(stream.next().await.is_none());
    assert_eq!(stream.retry(), Some(Duration::from_millis(1_500)));

    let requests = agent.requests();
    assert_eq!(requests[0].header("accept"), Some("text/event-stream"));
    assert_eq!(requests[0].header("last-event-id"), None);
}

#[tokio::test]
async fn error_event_is_read_in_every_known_form() {
    let info = r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"}"#;
    let forms = [
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no such task"}}"#.to_owned(),
        format!(
            r#"{{"error":{{"code":404,"status":"NOT_FOUND","message":"no such task","details":[{info}]}}}}"#
        ),
        r#"{"error":{"code":404,"status":"NOT_FOUND","message":"no such task"}}"#.to_owned(),
        r#"{"code":-32001,"message":"no such task"}"#.to_owned(),
    ];
    for form in forms {
        let agent = ScriptedAgent::start(|_| {
            let task = result(&format!(r#"{{"task":{TASK}}}"#));
            vec![events(&[&format!("id: 1\ndata: {task}\n\nevent: error\ndata: {form}\n\n")])]
        });
        let client = Client::connect(&agent.url("/")).unwrap();
        let mut stream = client.subscribe("t-1").await.unwrap();
        assert!(matches!(stream.next().await, Some(Ok(Event::Task(_)))), "{form}");
        assert_eq!(stream.last_event_id(), Some(1), "{form}");
        let ended = stream.next().await;
        let Some(Err(Error::Protocol(error))) = ended else { panic!("{form}: {ended:?}") };
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::TaskNotFound, "no such task"), "{form}");
        assert!(stream.next().await.is_none(), "an error is the last event");
    }
    let agent = ScriptedAgent::start(|_| vec![events(&["event: error\ndata: out of order\n\n"])]);
    let ended = Client::connect(&agent.url("/")).unwrap().subscribe("t-1").await.unwrap().next().await;
    assert!(matches!(ended, Some(Err(Error::Malformed(_)))), "{ended:?}");
}

#[tokio::test]
async fn skill_is_sent_in_the_metadata() {
    for dialect in [Dialect::V1, Dialect::V03] {
        let task = r#"{"id":"t-1","contextId":"c-1","status":{"state":"working"}}"#;
        let response = if dialect == Dialect::V1 { format!(r#"{{"task":{TASK}}}"#) } else { task.to_owned() };
        let agent = ScriptedAgent::start(|_| vec![json(&result(&response))]);
        let options = ClientOptions::default().with_dialect(dialect);
        let client = Client::connect_with(&agent.url("/"), options).unwrap();
        let req = SendMessage { skill: Some("sing".into()), ..send() };
        client.send(req).await.unwrap();
        let body = &agent.requests()[0].body;
        assert!(body.contains(r#""metadata":{"skillId":"sing"}"#), "{dialect:?}: {body}");
        assert_eq!(body.matches("skillId").count(), 1, "{dialect:?}: {body}");
    }
}

#[tokio::test]
async fn messages_and_artifacts_without_parts_are_read() {
    let cases = [
        (
            Dialect::V1,
            r#"{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"m","role":"ROLE_AGENT"}},"artifacts":[{"artifactId":"a"},{"artifactId":"b","parts":[]}],"history":[{"messageId":"n","role":"ROLE_USER","parts":null}]}"#,
        ),
        (
            Dialect::V03,
            r#"{"kind":"task","id":"t-1","contextId":"c-1","status":{"state":"completed","message":{"kind":"message","messageId":"m","role":"agent"}},"artifacts":[{"artifactId":"a"},{"artifactId":"b","parts":[]}],"history":[{"messageId":"n","role":"user","parts":null}]}"#,
        ),
        (
            Dialect::Draft,
            r#"{"id":"t-1","status":{"state":"completed","message":{"role":"agent"}},"artifacts":[{"index":0},{"index":1,"parts":[]}],"history":[{"role":"user","parts":null}]}"#,
        ),
    ];
    for (dialect, task) in cases {
        let agent = ScriptedAgent::start(|_| vec![json(&result(task))]);
        let options = ClientOptions::default().with_dialect(dialect);
        let client = Client::connect_with(&agent.url("/"), options).unwrap();
        let task = client.get_task("t-1").await.unwrap();
        assert!(task.artifacts.iter().all(|artifact| artifact.parts.is_empty()), "{dialect:?}");
        assert_eq!((task.artifacts.len(), task.status.state), (2, TaskState::Completed), "{dialect:?}");
        assert_eq!(task.status.message.map(|message| message.parts.len()), Some(0), "{dialect:?}");
    }
}

#[tokio::test]
async fn stream_is_resumed_after_an_event() {
    let agent = ScriptedAgent::start(|_| vec![events(&[])]);
    let client = Client::connect(&agent.url("/")).unwrap();
    assert!(client.resume("t-1", 41).await.unwrap().next().await.is_none());
    assert_eq!(agent.requests()[0].header("last-event-id"), Some("41"));
}

#[tokio::test]
async fn error_before_the_first_event_fails_the_call() {
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"the task has ended"}}"#;
    let agent = ScriptedAgent::start(|_| vec![json(body), json(&result(TASK))]);
    let client = Client::connect(&agent.url("/")).unwrap();
    let error = error_of(client.subscribe("t-1").await);
    assert!(
        matches!(&error, Error::Protocol(error) if error.kind == ErrorKind::UnsupportedOperation),
        "{error:?}"
    );
    let error = error_of(client.subscribe("t-1").await);
    assert!(error.to_string().ends_with("result: expected a stream, not a single response"), "{error}");
}

#[tokio::test]
async fn stream_ends_after_an_error() {
    let task = result(&format!(r#"{{"task":{TASK}}}"#));
    let failure = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"request 17"}}"#;
    let agent = ScriptedAgent::start(|_| {
        vec![
            events(&[&format!("data: {task}\n\ndata: {failure}\n\ndata: {task}\n\n")]),
            events(&["data: {}\n\n"]),
        ]
    });
    let client = Client::connect(&agent.url("/")).unwrap();
    let mut stream = client.subscribe("t-1").await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(Event::Task(_)))));
    assert_eq!(stream.last_event_id(), None);
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(matches!(&error, Error::Protocol(error) if error.kind == ErrorKind::Internal), "{error:?}");
    assert!(stream.next().await.is_none());

    let error = client.subscribe("t-1").await.unwrap().next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Malformed(_)), "{error:?}");
}

#[tokio::test]
async fn broken_connection_is_a_transport_error() {
    let task = result(&format!(r#"{{"task":{TASK}}}"#));
    let frame = format!("data: {task}\n\n");
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\ncontent-length: 100000\r\n\r\n";
    let agent = ScriptedAgent::start(|_| vec![vec![format!("{head}{frame}").into_bytes()]]);
    let client = Client::connect(&agent.url("/")).unwrap();
    let mut stream = client.subscribe("t-1").await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(_))));
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
}

#[tokio::test]
async fn unreachable_agent_is_a_transport_error() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Client::connect(&format!("http://{free}/")).unwrap().get_task("t-1").await.unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
}

pub(crate) fn result(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

pub(crate) fn send() -> SendMessage {
    SendMessage::new(Message::new("m-1", Role::User, vec![Part::text("hi")]))
}

/// The error of a call. Clients and streams do not implement `Debug`, so `unwrap_err` cannot be used.
pub(crate) fn error_of<T>(outcome: Result<T, Error>) -> Error {
    match outcome {
        Ok(_) => panic!("the call succeeded"),
        Err(error) => error,
    }
}
