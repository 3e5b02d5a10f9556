//! The method of each operation: what it sends, and the type it returns.

use a2ad_client::{Client, Error, EventStream, SendReply};
use futures_util::{FutureExt as _, StreamExt as _};
use protocol::{Event, GetExtendedCard, ListTasks, PushConfig, TaskState};

use crate::{
    TASK, result,
    scripted_agent::{Request, ScriptedAgent, events, json},
};

const CONFIG: &str = r#"{"id":"c-1","taskId":"t-1","url":"https://me.example/"}"#;
const UNKNOWN_METHOD: &str =
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#;

/// The message id in a request.
fn message_id(request: &Request) -> &str {
    let (_, rest) = request.body.split_once(r#""messageId":""#).unwrap();
    rest.split('"').next().unwrap()
}

#[tokio::test]
async fn each_operation_has_its_method_and_result() {
    let page = format!(r#"{{"tasks":[{TASK}],"nextPageToken":"p-2","pageSize":1,"totalSize":2}}"#);
    let configs = format!(r#"{{"configs":[{CONFIG}]}}"#);
    let card = r#"{"name":"a","supportedInterfaces":[
        {"url":"http://h/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#;
    let results = [TASK, TASK, &page, CONFIG, CONFIG, &configs, "null", card];
    let agent = ScriptedAgent::start(|_| results.iter().map(|body| json(&result(body))).collect());
    let client = Client::connect(&agent.url("/")).unwrap();

    let task = client.get_task("t-1").await.unwrap();
    assert_eq!(task.status.state, TaskState::Working);
    assert_eq!(client.cancel(&task.id).await.unwrap(), task);
    let page = client.list_tasks(ListTasks { page_size: Some(1), ..ListTasks::default() }).await.unwrap();
    assert_eq!((page.tasks, page.next_page_token.as_deref(), page.total_size), (vec![task], Some("p-2"), 2));
    let config = PushConfig { task_id: Some("t-1".into()), ..PushConfig::new("https://me.example/") };
    let created = client.create_push_config(config).await.unwrap();
    assert_eq!(created.id.as_ref().map(|id| id.as_str()), Some("c-1"));
    assert_eq!(client.get_push_config(("t-1", "c-1")).await.unwrap(), created);
    assert_eq!(client.list_push_configs("t-1").await.unwrap().configs, [created]);
    client.delete_push_config(("t-1", "c-1")).await.unwrap();
    let card = client.extended_card(GetExtendedCard::default()).await.unwrap();
    assert_eq!((card.name.as_str(), card.interfaces.len()), ("a", 1));

    let expected = [
        ("GetTask", r#"{"id":"t-1"}"#),
        ("CancelTask", r#"{"id":"t-1"}"#),
        ("ListTasks", r#"{"pageSize":1}"#),
        ("CreateTaskPushNotificationConfig", r#"{"taskId":"t-1","url":"https://me.example/"}"#),
        ("GetTaskPushNotificationConfig", r#"{"taskId":"t-1","id":"c-1"}"#),
        ("ListTaskPushNotificationConfigs", r#"{"taskId":"t-1"}"#),
        ("DeleteTaskPushNotificationConfig", r#"{"taskId":"t-1","id":"c-1"}"#),
        ("GetExtendedAgentCard", "{}"),
    ];
    for (request, (method, params)) in agent.requests().iter().zip(expected) {
        let tail = format!(r#""method":"{method}","params":{params}}}"#);
        assert!(request.body.ends_with(&tail), "{method}: {}", request.body);
    }
}

#[tokio::test]
async fn response_of_another_kind_is_an_error() {
    let status = r#"{"statusUpdate":{"taskId":"t-1","status":{"state":"TASK_STATE_WORKING"}}}"#;
    let agent = ScriptedAgent::start(|_| {
        [r#"{"tasks":[]}"#, status, TASK].iter().map(|body| json(&result(body))).collect()
    });
    let client = Client::connect(&agent.url("/")).unwrap();
    let errors = [
        (client.get_task("t-1").await.unwrap_err(), "result.id: required, expected a non-empty string"),
        (client.send("hi").await.unwrap_err(), "result: expected a task or a message"),
        (
            client.send("hi").await.unwrap_err(),
            "expected exactly one of task, message, statusUpdate, artifactUpdate",
        ),
    ];
    for (error, expected) in errors {
        assert!(matches!(error, Error::Malformed(_)), "{error:?}");
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}

#[tokio::test]
async fn text_is_sent_as_a_message_with_a_new_id() {
    let message = r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hello"}]}}"#;
    let agent = ScriptedAgent::start(|_| vec![json(&result(message)), events(&[])]);
    let client = Client::connect(&agent.url("/")).unwrap();
    let reply = client.send("hi").await.unwrap();
    assert!(matches!(reply, SendReply::Message(_)), "{reply:?}");
    assert_eq!((reply.text().as_str(), reply.into_task()), ("hello", None));
    client.stream(String::from("hi")).await.unwrap();

    let requests = agent.requests();
    let ids: Vec<&str> = requests.iter().map(message_id).collect();
    for (request, id) in requests.iter().zip(&ids) {
        // Servers deduplicate by UUIDs.
        uuid::Uuid::parse_str(id).unwrap();
        let message = format!(
            r#""params":{{"message":{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"text":"hi"}}]}}}}}}"#
        );
        assert!(request.body.ends_with(&message), "{}", request.body);
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn message_keeps_its_new_id_in_the_other_dialect() {
    let agent = ScriptedAgent::start(|url| {
        let ambiguous = json(&format!(r#"{{"name":"a","url":"{url}/"}}"#));
        let task = r#"{"id":"t-1","status":{"state":"completed"}}"#;
        vec![ambiguous, json(UNKNOWN_METHOD), json(&result(task))]
    });
    let client = Client::discover(&agent.url("")).await.unwrap();
    assert!(client.send("hi").await.unwrap().into_task().is_some());
    let requests = agent.requests();
    assert!(requests[1].body.contains(r#""method":"message/send""#), "{}", requests[1].body);
    assert!(requests[2].body.contains(r#""method":"tasks/send""#), "{}", requests[2].body);
    let id = message_id(&requests[1]);
    assert!(requests[2].body.contains(id), "{id} is not in {}", requests[2].body);
}

/// A stream of a snapshot and two status updates, in small chunks.
fn three_events() -> ScriptedAgent {
    let task = result(&format!(r#"{{"task":{TASK}}}"#));
    let working = result(r#"{"statusUpdate":{"taskId":"t-1","status":{"state":"TASK_STATE_WORKING"}}}"#);
    let body = format!("id: 1\ndata: {task}\n\nid: 2\ndata: {working}\n\nid: 3\ndata: {working}\n\n");
    let chunks: Vec<String> =
        body.as_bytes().chunks(7).map(|chunk| String::from_utf8_lossy(chunk).into()).collect();
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    ScriptedAgent::start(|_| vec![events(&chunks)])
}

fn check_three_events(events: &[Event]) {
    assert!(matches!(events, [Event::Task(_), Event::Status(_), Event::Status(_)]), "{events:?}");
}

#[tokio::test]
async fn event_stream_is_a_stream() {
    fn check_bounds<S: futures_core::Stream + Send + Unpin + 'static>(stream: S) -> S {
        stream
    }
    let agent = three_events();
    let client = Client::connect(&agent.url("/")).unwrap();
    let stream: EventStream = check_bounds(client.subscribe("t-1").await.unwrap());
    let received: Vec<Event> = stream.map(Result::unwrap).collect().await;
    check_three_events(&received);
}

#[tokio::test]
async fn no_event_is_lost_when_the_future_is_dropped() {
    let agent = three_events();
    let client = Client::connect(&agent.url("/")).unwrap();
    let mut stream = client.subscribe("t-1").await.unwrap();
    let mut received = Vec::new();
    loop {
        match stream.next().now_or_never() {
            None => tokio::task::yield_now().await,
            Some(Some(event)) => received.push(event.unwrap()),
            Some(None) => break,
        }
    }
    check_three_events(&received);
    assert_eq!(stream.last_event_id(), Some(3));
}

#[tokio::test]
async fn calls_can_be_spawned() {
    let agent = ScriptedAgent::start(|_| vec![json(&result(TASK))]);
    let client = Client::connect(&agent.url("/")).unwrap();
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { client.get_task("t-1").await });
    assert_eq!(calls.join_next().await.unwrap().unwrap().unwrap().id.as_str(), "t-1");
}
