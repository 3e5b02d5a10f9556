//! One message followed to its outcome over connections that break.

use a2ad_client::{Client, ClientOptions, Error, Follow, FollowEvent, text};
use protocol::{Dialect, Event, SendMessage, TaskState};

use crate::{
    error_of, result,
    scripted_agent::{Response, ScriptedAgent, broken, events, json, response},
    send,
};

/// What was received: the text of the artifacts in order, the states, and how often the connection was lost.
struct Received {
    chunks: Vec<String>,
    states: Vec<TaskState>,
    lost: usize,
    end: Option<TaskState>,
}

fn client(agent: &ScriptedAgent, dialect: Dialect) -> Client {
    let options = ClientOptions::default().with_dialect(dialect);
    Client::connect_with(&agent.url("/"), options).unwrap()
}

async fn collect(mut follow: Follow<'_>) -> Result<Received, Error> {
    let mut received = Received { chunks: Vec::new(), states: Vec::new(), lost: 0, end: None };
    while let Some(event) = follow.next().await? {
        match event {
            FollowEvent::Lost => received.lost += 1,
            FollowEvent::Event(Event::Artifact(update)) => {
                received.chunks.push(text::of_parts(&update.artifact.parts))
            }
            FollowEvent::Event(Event::Status(update)) => received.states.push(update.status.state),
            FollowEvent::Event(Event::Task(task)) => {
                received.chunks.extend(task.artifacts.iter().map(|artifact| text::of_parts(&artifact.parts)));
            }
            FollowEvent::Event(Event::Message(message)) => received.chunks.push(message.text()),
        }
    }
    received.end = follow.task().map(|task| task.status.state);
    Ok(received)
}

async fn stream(
    dialect: Dialect,
    responses: Vec<Response>,
) -> (Received, Vec<crate::scripted_agent::Request>) {
    let agent = ScriptedAgent::start(|_| responses);
    let client = client(&agent, dialect);
    let received = collect(Follow::stream(&client, send()).await.unwrap()).await.unwrap();
    (received, agent.requests())
}

fn frame(seq: u64, body: &str) -> String {
    format!("id: {seq}\ndata: {}\n\n", result(body))
}

fn unnumbered(body: &str) -> String {
    format!("data: {}\n\n", result(body))
}

mod v1 {
    pub(super) fn task(state: &str, texts: &[&str]) -> String {
        let parts: Vec<String> = texts.iter().map(|text| format!(r#"{{"text":"{text}"}}"#)).collect();
        let artifacts = match texts {
            [] => String::new(),
            _ => format!(r#","artifacts":[{{"artifactId":"a","parts":[{}]}}]"#, parts.join(",")),
        };
        format!(r#"{{"id":"t-1","contextId":"c","status":{{"state":"TASK_STATE_{state}"}}{artifacts}}}"#)
    }

    pub(super) fn snapshot(state: &str, texts: &[&str]) -> String {
        format!(r#"{{"task":{}}}"#, task(state, texts))
    }

    pub(super) fn chunk(text: &str) -> String {
        format!(
            r#"{{"artifactUpdate":{{"taskId":"t-1","artifact":{{"artifactId":"a","parts":[{{"text":"{text}"}}]}},"append":true}}}}"#
        )
    }

    pub(super) fn status(state: &str) -> String {
        format!(r#"{{"statusUpdate":{{"taskId":"t-1","status":{{"state":"TASK_STATE_{state}"}}}}}}"#)
    }
}

#[tokio::test]
async fn numbered_events_are_resumed_after_the_last() {
    let (received, requests) = stream(
        Dialect::V1,
        vec![
            broken(&[
                &frame(1, &v1::snapshot("WORKING", &[])),
                &frame(2, &v1::chunk("one ")),
                "id: 3\ndata: {",
            ]),
            response("503 Service Unavailable", "text/plain", ""),
            events(&[
                &frame(2, &v1::snapshot("COMPLETED", &[])),
                &frame(2, &v1::chunk("one ")),
                &frame(3, &v1::chunk("two ")),
                &frame(4, &v1::chunk("three")),
                &frame(5, &v1::status("COMPLETED")),
            ]),
            json(&result(&v1::task("COMPLETED", &["one two three"]))),
        ],
    )
    .await;
    assert_eq!(received.chunks.concat(), "one two three");
    assert_eq!((received.lost, received.end), (2, Some(TaskState::Completed)));
    assert_eq!(received.states, [TaskState::Completed]);
    assert!(requests[2].body.contains("SubscribeToTask"));
    assert_eq!(requests[2].header("last-event-id"), Some("2"));
}

#[tokio::test]
async fn without_numbers_missed_events_come_from_the_snapshot() {
    let (received, requests) = stream(
        Dialect::V1,
        vec![
            broken(&[&unnumbered(&v1::snapshot("WORKING", &[])), &unnumbered(&v1::chunk("one "))]),
            events(&[
                &unnumbered(&v1::snapshot("WORKING", &["one ", "two "])),
                &unnumbered(&v1::chunk("three")),
                &unnumbered(&v1::status("COMPLETED")),
            ]),
            json(&result(&v1::task("COMPLETED", &["one ", "two ", "three"]))),
        ],
    )
    .await;
    assert_eq!(received.chunks, ["one ", "two ", "three"]);
    assert_eq!(received.states, [TaskState::Completed]);
    assert_eq!(requests[1].header("last-event-id"), None);
}

#[tokio::test]
async fn resumed_stream_without_snapshot_is_replaced_by_polling() {
    let (received, requests) = stream(
        Dialect::V1,
        vec![
            broken(&[&unnumbered(&v1::snapshot("WORKING", &[])), &unnumbered(&v1::chunk("one "))]),
            events(&[&unnumbered(&v1::chunk("three"))]),
            json(&result(&v1::task("WORKING", &["one ", "two ", "three"]))),
            json(&result(&v1::task("COMPLETED", &["one ", "two ", "three"]))),
        ],
    )
    .await;
    assert_eq!(received.chunks.concat(), "one two three");
    assert!(requests[2].body.contains("GetTask"));
}

#[tokio::test]
async fn task_that_ended_meanwhile_is_read() {
    let over = r#"{"id":1,"error":{"code":-32004,"message":"the task is over"}}"#;
    let (received, _) = stream(
        Dialect::V1,
        vec![
            // A stream that ends early without an error is not the end of the task either.
            events(&[
                &frame(1, &v1::snapshot("WORKING", &[])),
                &frame(2, &v1::chunk("one ")),
                "retry: 1\n\n",
            ]),
            json(over),
            json(&result(&v1::task("FAILED", &["one ", "two"]))),
        ],
    )
    .await;
    assert_eq!((received.chunks.concat().as_str(), received.end), ("one two", Some(TaskState::Failed)));
    assert_eq!((received.lost, received.states), (1, vec![TaskState::Failed]));
}

#[tokio::test]
async fn draft_is_resumed_by_number_or_by_polling() {
    let status =
        |state: &str, last: bool| format!(r#"{{"id":"t-1","status":{{"state":"{state}"}},"final":{last}}}"#);
    let chunk = |text: &str, append: bool| {
        format!(
            r#"{{"id":"t-1","artifact":{{"parts":[{{"type":"text","text":"{text}"}}],"index":0,"append":{append}}}}}"#
        )
    };
    let task = r#"{"id":"t-1","status":{"state":"completed"},"artifacts":[
        {"parts":[{"type":"text","text":"one "},{"type":"text","text":"two"}],"index":0}]}"#;
    let (received, requests) = stream(
        Dialect::Draft,
        vec![
            broken(&[&frame(1, &status("submitted", false)), &frame(2, &chunk("one ", false))]),
            events(&[
                &frame(2, &status("completed", false)),
                &frame(3, &chunk("two", true)),
                &frame(4, &status("completed", true)),
            ]),
            json(&result(task)),
        ],
    )
    .await;
    assert_eq!((received.chunks.concat().as_str(), received.end), ("one two", Some(TaskState::Completed)));
    assert!(requests[1].body.contains("tasks/resubscribe"));
    assert_eq!(requests[1].header("last-event-id"), Some("2"));

    // Broken within the snapshot: its missing frames cannot be requested by number.
    let (received, requests) =
        stream(Dialect::Draft, vec![broken(&[&frame(7, &status("working", false))]), json(&result(task))])
            .await;
    assert_eq!(received.chunks.concat(), "one two");
    assert!(requests[1].body.contains("tasks/get"));
}

#[tokio::test]
async fn agent_without_streaming_is_polled() {
    let unsupported = r#"{"id":1,"error":{"code":-32004,"message":"This operation is not supported"}}"#;
    let (received, requests) = stream(
        Dialect::V1,
        vec![
            json(unsupported),
            json(&result(&v1::snapshot("SUBMITTED", &[]))),
            json(&result(&v1::task("WORKING", &["one "]))),
            json(&result(&v1::task("INPUT_REQUIRED", &["one ", "two"]))),
        ],
    )
    .await;
    assert_eq!(
        (received.chunks, received.end),
        (vec!["one ".into(), "two".into()], Some(TaskState::InputRequired))
    );
    assert!(requests[1].body.contains(r#""returnImmediately":true"#), "{}", requests[1].body);
}

#[tokio::test]
async fn message_to_an_existing_task_is_sent_blocking() {
    let agent = ScriptedAgent::start(|_| vec![json(&result(&v1::snapshot("COMPLETED", &["done"])))]);
    let client = client(&agent, Dialect::V1);
    let mut req = SendMessage { return_immediately: true, ..send() };
    req.message.task_id = Some("t-1".into());
    let received = collect(Follow::send(&client, req).await.unwrap()).await.unwrap();
    assert_eq!((received.chunks.concat().as_str(), received.end), ("done", Some(TaskState::Completed)));
    let [request] = &agent.requests()[..] else { panic!("expected one request") };
    assert!(!request.body.contains("returnImmediately"), "{}", request.body);
}

#[tokio::test]
async fn message_is_resent_only_if_the_agent_deduplicates() {
    let agent = ScriptedAgent::start(|_| vec![broken(&[])]);
    let client_ = client(&agent, Dialect::V1);
    let error = match Follow::stream(&client_, send()).await {
        Ok(follow) => error_of(collect(follow).await),
        Err(error) => error,
    };
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    assert_eq!(agent.requests().len(), 1);

    let mut ours = broken(&[": alive\n\n"]);
    ours[0] =
        String::from_utf8(ours[0].clone()).unwrap().replacen("\r\n", "\r\na2ad-dialect: 1.0\r\n", 1).into();
    let again = events(&[&frame(1, &v1::snapshot("WORKING", &[])), &frame(2, &v1::status("COMPLETED"))]);
    let (received, requests) =
        stream(Dialect::V1, vec![ours, again, json(&result(&v1::task("COMPLETED", &[])))]).await;
    assert_eq!((received.lost, received.end), (1, Some(TaskState::Completed)));
    let message = |at: usize| requests[at].body.split_once(r#""method""#).unwrap().1.to_owned();
    assert_eq!(message(0), message(1));
}

#[tokio::test]
async fn direct_message_ends_the_follow() {
    let message = r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}"#;
    let agent = ScriptedAgent::start(|_| vec![events(&[&unnumbered(message)]), json(&result(message))]);
    let client = client(&agent, Dialect::V1);
    let streamed = Follow::stream(&client, send()).await.unwrap();
    let sent = Follow::send(&client, SendMessage { return_immediately: true, ..send() });
    let received = collect(streamed).await.unwrap();
    assert_eq!((received.chunks, received.end), (vec!["hi".to_owned()], None));
    assert_eq!(collect(sent.await.unwrap()).await.unwrap().chunks, ["hi"]);
}

#[tokio::test]
async fn task_deleted_before_the_reconnect_is_an_error() {
    let gone = r#"{"id":1,"error":{"code":-32001,"message":"Task not found"}}"#;
    let agent =
        ScriptedAgent::start(|_| vec![broken(&[&frame(1, &v1::snapshot("WORKING", &[]))]), json(gone)]);
    let client = client(&agent, Dialect::V1);
    let error = error_of(collect(Follow::stream(&client, send()).await.unwrap()).await);
    assert!(matches!(error, Error::Protocol(_)), "{error:?}");
}
