//! One message seen through to its outcome, over connections that break.

use a2ad_client::{Client, Error, Follow, FollowEvent, Options, text};
use protocol::{Dialect, Event, SendMessage, TaskState};

use crate::{
    agent::{Agent, Answer, answer, broken, events, json},
    refused, result, send,
};

/// What was heard: the text of the artifacts as it came, and how often the connection was lost.
struct Told {
    chunks: Vec<String>,
    states: Vec<TaskState>,
    lost: usize,
    end: Option<TaskState>,
}

fn client(agent: &Agent, dialect: Dialect) -> Client {
    let options = Options { dialect: Some(dialect), ..Options::default() };
    Client::connect_with(&agent.url("/"), options).unwrap()
}

async fn listen(mut follow: Follow<'_>) -> Result<Told, Error> {
    let mut told = Told { chunks: Vec::new(), states: Vec::new(), lost: 0, end: None };
    while let Some(heard) = follow.next().await? {
        match heard {
            FollowEvent::Lost => told.lost += 1,
            FollowEvent::Event(Event::Artifact(update)) => {
                told.chunks.push(text::of_parts(&update.artifact.parts))
            }
            FollowEvent::Event(Event::Status(update)) => told.states.push(update.status.state),
            FollowEvent::Event(Event::Task(task)) => {
                told.chunks.extend(task.artifacts.iter().map(|artifact| text::of_parts(&artifact.parts)));
            }
            FollowEvent::Event(Event::Message(message)) => told.chunks.push(message.text()),
        }
    }
    told.end = follow.task().map(|task| task.status.state);
    Ok(told)
}

async fn stream(dialect: Dialect, answers: Vec<Answer>) -> (Told, Vec<crate::agent::Request>) {
    let agent = Agent::start(|_| answers);
    let client = client(&agent, dialect);
    let told = listen(Follow::stream(&client, send()).await.unwrap()).await.unwrap();
    (told, agent.requests())
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

    pub(super) fn shown(state: &str, texts: &[&str]) -> String {
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
async fn numbered_events_are_resumed_behind_the_last() {
    let (told, requests) = stream(
        Dialect::V1,
        vec![
            broken(&[&frame(1, &v1::shown("WORKING", &[])), &frame(2, &v1::chunk("one ")), "id: 3\ndata: {"]),
            answer("503 Service Unavailable", "text/plain", ""),
            events(&[
                &frame(2, &v1::shown("COMPLETED", &[])),
                &frame(2, &v1::chunk("one ")),
                &frame(3, &v1::chunk("two ")),
                &frame(4, &v1::chunk("three")),
                &frame(5, &v1::status("COMPLETED")),
            ]),
            json(&result(&v1::task("COMPLETED", &["one two three"]))),
        ],
    )
    .await;
    assert_eq!(told.chunks.concat(), "one two three");
    assert_eq!((told.lost, told.end), (2, Some(TaskState::Completed)));
    assert_eq!(told.states, [TaskState::Completed]);
    assert!(requests[2].body.contains("SubscribeToTask"));
    assert_eq!(requests[2].header("last-event-id"), Some("2"));
}

#[tokio::test]
async fn without_numbers_the_whole_task_tells_what_was_missed() {
    let (told, requests) = stream(
        Dialect::V1,
        vec![
            broken(&[&unnumbered(&v1::shown("WORKING", &[])), &unnumbered(&v1::chunk("one "))]),
            events(&[
                &unnumbered(&v1::shown("WORKING", &["one ", "two "])),
                &unnumbered(&v1::chunk("three")),
                &unnumbered(&v1::status("COMPLETED")),
            ]),
            json(&result(&v1::task("COMPLETED", &["one ", "two ", "three"]))),
        ],
    )
    .await;
    assert_eq!(told.chunks, ["one ", "two ", "three"]);
    assert_eq!(told.states, [TaskState::Completed]);
    assert_eq!(requests[1].header("last-event-id"), None);
}

#[tokio::test]
async fn a_stream_that_goes_on_without_showing_the_task_is_not_trusted() {
    let (told, requests) = stream(
        Dialect::V1,
        vec![
            broken(&[&unnumbered(&v1::shown("WORKING", &[])), &unnumbered(&v1::chunk("one "))]),
            events(&[&unnumbered(&v1::chunk("three"))]),
            json(&result(&v1::task("WORKING", &["one ", "two ", "three"]))),
            json(&result(&v1::task("COMPLETED", &["one ", "two ", "three"]))),
        ],
    )
    .await;
    assert_eq!(told.chunks.concat(), "one two three");
    assert!(requests[2].body.contains("GetTask"));
}

#[tokio::test]
async fn a_task_that_ended_meanwhile_is_read() {
    let over = r#"{"id":1,"error":{"code":-32004,"message":"the task is over"}}"#;
    let (told, _) = stream(
        Dialect::V1,
        vec![
            // A stream that ends early and in peace is not the task's end either.
            events(&[&frame(1, &v1::shown("WORKING", &[])), &frame(2, &v1::chunk("one ")), "retry: 1\n\n"]),
            json(over),
            json(&result(&v1::task("FAILED", &["one ", "two"]))),
        ],
    )
    .await;
    assert_eq!((told.chunks.concat().as_str(), told.end), ("one two", Some(TaskState::Failed)));
    assert_eq!((told.lost, told.states), (1, vec![TaskState::Failed]));
}

#[tokio::test]
async fn the_draft_is_resumed_by_numbers_or_by_reading() {
    let status =
        |state: &str, last: bool| format!(r#"{{"id":"t-1","status":{{"state":"{state}"}},"final":{last}}}"#);
    let chunk = |text: &str, append: bool| {
        format!(
            r#"{{"id":"t-1","artifact":{{"parts":[{{"type":"text","text":"{text}"}}],"index":0,"append":{append}}}}}"#
        )
    };
    let task = r#"{"id":"t-1","status":{"state":"completed"},"artifacts":[
        {"parts":[{"type":"text","text":"one "},{"type":"text","text":"two"}],"index":0}]}"#;
    let (told, requests) = stream(
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
    assert_eq!((told.chunks.concat().as_str(), told.end), ("one two", Some(TaskState::Completed)));
    assert!(requests[1].body.contains("tasks/resubscribe"));
    assert_eq!(requests[1].header("last-event-id"), Some("2"));

    // Broken while the task was being shown: what was left out cannot be asked for by number.
    let (told, requests) =
        stream(Dialect::Draft, vec![broken(&[&frame(7, &status("working", false))]), json(&result(task))])
            .await;
    assert_eq!(told.chunks.concat(), "one two");
    assert!(requests[1].body.contains("tasks/get"));
}

#[tokio::test]
async fn an_agent_that_cannot_stream_is_asked_now_and_then() {
    let unsupported = r#"{"id":1,"error":{"code":-32004,"message":"This operation is not supported"}}"#;
    let (told, requests) = stream(
        Dialect::V1,
        vec![
            json(unsupported),
            json(&result(&v1::shown("SUBMITTED", &[]))),
            json(&result(&v1::task("WORKING", &["one "]))),
            json(&result(&v1::task("INPUT_REQUIRED", &["one ", "two"]))),
        ],
    )
    .await;
    assert_eq!((told.chunks, told.end), (vec!["one ".into(), "two".into()], Some(TaskState::InputRequired)));
    assert!(requests[1].body.contains(r#""returnImmediately":true"#), "{}", requests[1].body);
}

#[tokio::test]
async fn the_answer_to_a_question_waits_for_what_it_brings() {
    let agent = Agent::start(|_| vec![json(&result(&v1::shown("COMPLETED", &["done"])))]);
    let client = client(&agent, Dialect::V1);
    let mut req = SendMessage { return_immediately: true, ..send() };
    req.message.task_id = Some("t-1".into());
    let told = listen(Follow::send(&client, req).await.unwrap()).await.unwrap();
    assert_eq!((told.chunks.concat().as_str(), told.end), ("done", Some(TaskState::Completed)));
    let [request] = &agent.requests()[..] else { panic!("one call is enough") };
    assert!(!request.body.contains("returnImmediately"), "{}", request.body);
}

#[tokio::test]
async fn a_message_of_unknown_fate_is_sent_again_only_where_that_is_safe() {
    let agent = Agent::start(|_| vec![broken(&[])]);
    let client_ = client(&agent, Dialect::V1);
    let error = match Follow::stream(&client_, send()).await {
        Ok(follow) => refused(listen(follow).await),
        Err(error) => error,
    };
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    assert_eq!(agent.requests().len(), 1);

    let mut ours = broken(&[": alive\n\n"]);
    ours[0] =
        String::from_utf8(ours[0].clone()).unwrap().replacen("\r\n", "\r\na2ad-dialect: v1\r\n", 1).into();
    let again = events(&[&frame(1, &v1::shown("WORKING", &[])), &frame(2, &v1::status("COMPLETED"))]);
    let (told, requests) =
        stream(Dialect::V1, vec![ours, again, json(&result(&v1::task("COMPLETED", &[])))]).await;
    assert_eq!((told.lost, told.end), (1, Some(TaskState::Completed)));
    let message = |at: usize| requests[at].body.split_once(r#""method""#).unwrap().1.to_owned();
    assert_eq!(message(0), message(1));
}

#[tokio::test]
async fn a_bare_message_is_the_whole_answer() {
    let message = r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}"#;
    let agent = Agent::start(|_| vec![events(&[&unnumbered(message)]), json(&result(message))]);
    let client = client(&agent, Dialect::V1);
    let streamed = Follow::stream(&client, send()).await.unwrap();
    let sent = Follow::send(&client, SendMessage { return_immediately: true, ..send() });
    let told = listen(streamed).await.unwrap();
    assert_eq!((told.chunks, told.end), (vec!["hi".to_owned()], None));
    assert_eq!(listen(sent.await.unwrap()).await.unwrap().chunks, ["hi"]);
}

#[tokio::test]
async fn a_task_that_is_gone_after_the_break_is_an_error() {
    let gone = r#"{"id":1,"error":{"code":-32001,"message":"Task not found"}}"#;
    let agent = Agent::start(|_| vec![broken(&[&frame(1, &v1::shown("WORKING", &[]))]), json(gone)]);
    let client = client(&agent, Dialect::V1);
    let error = refused(listen(Follow::stream(&client, send()).await.unwrap()).await);
    assert!(matches!(error, Error::Protocol(_)), "{error:?}");
}
