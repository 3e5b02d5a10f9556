//! Answers of the older generations, as exact and as odd as agents give them.

use a2ad_client::{Client, Error, Options};
use protocol::{
    Content, Dialect, ErrorKind, Event, ListTasks, Operation, Reply, SubscribeToTask, Task, TaskState,
};

use crate::{
    agent::{Agent, answer, events, json},
    get, result, send,
};

fn client(agent: &Agent, dialect: Dialect) -> Client {
    let options = Options { dialect: Some(dialect), ..Options::default() };
    Client::connect_with(&agent.url("/"), options).unwrap()
}

async fn sent(client: &Client) -> Task {
    match client.call(Operation::SendMessage(send())).await.unwrap() {
        Reply::SentTask(task) => task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn in_the_draft_the_client_names_the_task() {
    let task = r#"{"id":"t-1","sessionId":null,"status":{"state":"working","timestamp":"2025-04-02T16:59:35.331844"},
        "artifacts":null,"history":null,"metadata":null,"extra":1}"#;
    let agent = Agent::start(|_| vec![json(&result(task))]);
    let task = sent(&client(&agent, Dialect::Draft)).await;
    assert_eq!(task.status.state, TaskState::Working);
    let request = &agent.requests()[0];
    assert_eq!(request.header("a2a-version"), Some("0.1"));
    assert!(request.body.starts_with(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":""#));
}

#[tokio::test]
async fn odd_answers_of_old_agents_are_understood() {
    let task = "\u{feff}{\"id\":\"1\",\"result\":{\"id\":\"t-1\",\"status\":{\"state\":\"pondering\"},\
        \"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"type\":\"text\",\"text\":\"x\"}]}]},\"error\":null}";
    let message =
        r#"{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"hi"}]}"#;
    let agent = Agent::start(|_| vec![json(task), json(&result(message))]);
    let client = client(&agent, Dialect::V03);
    let task = sent(&client).await;
    assert_eq!(task.status.state, TaskState::Unspecified);
    assert_eq!(task.artifacts[0].parts[0].content, Content::Text("x".into()));
    let reply = client.call(Operation::SendMessage(send())).await.unwrap();
    assert!(matches!(reply, Reply::SentMessage(message) if message.text() == "hi"));
}

#[tokio::test]
async fn a_code_is_read_as_its_generation_means_it_and_the_status_goes_before() {
    let error = |code: i32| format!(r#"{{"id":1,"error":{{"code":{code},"message":"no"}}}}"#);
    let agent = Agent::start(|_| {
        vec![
            json(&error(-32006)),
            json(&error(-32007)),
            answer("401 Unauthorized", "application/json", &error(-32010)),
            answer("403 Forbidden", "application/json", &error(-32603)),
        ]
    });
    let client = client(&agent, Dialect::Draft);
    for expected in [
        ErrorKind::UnsupportedOperation,
        ErrorKind::Unauthenticated,
        ErrorKind::Unauthenticated,
        ErrorKind::PermissionDenied,
    ] {
        let refused = client.call(get()).await;
        assert!(matches!(&refused, Err(Error::Protocol(error)) if error.kind == expected), "{refused:?}");
    }
}

#[tokio::test]
async fn old_streams_are_read_whatever_their_framing() {
    let draft =
        result(r#"{"id":"t-1","artifact":{"parts":[{"type":"text","text":"x"}],"index":0,"append":true}}"#);
    let old = result(
        r#"{"taskId":"t-1","kind":"status-update","final":true,"status":{"state":"input_required","message":null}}"#,
    );
    for (dialect, body) in [(Dialect::Draft, draft), (Dialect::V03, old)] {
        let (head, tail) = body.split_at(24);
        let body =
            format!("\u{feff}: hi\r\nevent: message\r\nid: x-1\r\ndata: {head}\r\ndata:{tail}\r\n\r\n");
        let agent = Agent::start(|_| vec![events(&[&body])]);
        let subscribe = Operation::SubscribeToTask(SubscribeToTask { id: "t-1".into(), tenant: None });
        let mut stream = client(&agent, dialect).stream(subscribe).await.unwrap();
        match stream.next().await.unwrap() {
            Some((None, Event::Artifact(update))) => assert!(update.append),
            Some((None, Event::Status(update))) => assert_eq!(update.status.state, TaskState::InputRequired),
            other => panic!("{other:?}"),
        }
        assert_eq!(stream.next().await.unwrap(), None);
    }
}

#[tokio::test]
async fn what_a_generation_does_not_have_is_not_asked_for() {
    for dialect in [Dialect::Draft, Dialect::V03] {
        let options = Options { dialect: Some(dialect), ..Options::default() };
        let client = Client::connect_with("http://127.0.0.1:1/", options).unwrap();
        let error = client.call(Operation::ListTasks(ListTasks::default())).await.unwrap_err();
        assert!(matches!(error, Error::NoMethod { method: "ListTasks", .. }), "{error:?}");
    }
}
