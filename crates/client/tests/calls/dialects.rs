//! Responses of older generations, including nonconforming ones seen in practice.

use a2ad_client::{Client, ClientOptions, Error, SendReply};
use protocol::{Content, Dialect, ErrorKind, Event, ListTasks, Task, TaskState};

use crate::{
    result,
    scripted_agent::{ScriptedAgent, events, json, response},
    send,
};

fn client(agent: &ScriptedAgent, dialect: Dialect) -> Client {
    let options = ClientOptions::default().with_dialect(dialect);
    Client::connect_with(&agent.url("/"), options).unwrap()
}

async fn sent(client: &Client) -> Task {
    match client.send(send()).await.unwrap() {
        SendReply::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn draft_client_assigns_the_task_id() {
    let task = r#"{"id":"t-1","sessionId":null,"status":{"state":"working","timestamp":"2025-04-02T16:59:35.331844"},
        "artifacts":null,"history":null,"metadata":null,"extra":1}"#;
    let agent = ScriptedAgent::start(|_| vec![json(&result(task))]);
    let task = sent(&client(&agent, Dialect::Draft)).await;
    assert_eq!(task.status.state, TaskState::Working);
    let request = &agent.requests()[0];
    assert_eq!(request.header("a2a-version"), Some("0.1"));
    assert!(request.body.starts_with(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":""#));
}

#[tokio::test]
async fn nonconforming_responses_of_old_agents_are_read() {
    let task = "\u{feff}{\"id\":\"1\",\"result\":{\"id\":\"t-1\",\"status\":{\"state\":\"pondering\"},\
        \"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"type\":\"text\",\"text\":\"x\"}]}]},\"error\":null}";
    let message =
        r#"{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"hi"}]}"#;
    let agent = ScriptedAgent::start(|_| vec![json(task), json(&result(message))]);
    let client = client(&agent, Dialect::V03);
    let task = sent(&client).await;
    assert_eq!(task.status.state, TaskState::Unspecified);
    assert_eq!(task.artifacts[0].parts[0].content, Content::Text("x".into()));
    let reply = client.send(send()).await.unwrap();
    assert!(matches!(reply, SendReply::Message(message) if message.text() == "hi"));
}

#[tokio::test]
async fn error_code_is_read_by_generation_and_status_takes_precedence() {
    let error = |code: i32| format!(r#"{{"id":1,"error":{{"code":{code},"message":"no"}}}}"#);
    let agent = ScriptedAgent::start(|_| {
        vec![
            json(&error(-32006)),
            json(&error(-32007)),
            response("401 Unauthorized", "application/json", &error(-32010)),
            response("403 Forbidden", "application/json", &error(-32603)),
        ]
    });
    let client = client(&agent, Dialect::Draft);
    for expected in [
        ErrorKind::UnsupportedOperation,
        ErrorKind::Unauthenticated,
        ErrorKind::Unauthenticated,
        ErrorKind::PermissionDenied,
    ] {
        let outcome = client.get_task("t-1").await;
        assert!(matches!(&outcome, Err(Error::Protocol(error)) if error.kind == expected), "{outcome:?}");
    }
}

#[tokio::test]
async fn old_streams_are_read_with_any_framing() {
    let draft =
        result(r#"{"id":"t-1","artifact":{"parts":[{"type":"text","text":"x"}],"index":0,"append":true}}"#);
    let old = result(
        r#"{"taskId":"t-1","kind":"status-update","final":true,"status":{"state":"input_required","message":null}}"#,
    );
    for (dialect, body) in [(Dialect::Draft, draft), (Dialect::V03, old)] {
        let (head, tail) = body.split_at(24);
        let body =
            format!("\u{feff}: hi\r\nevent: message\r\nid: x-1\r\ndata: {head}\r\ndata:{tail}\r\n\r\n");
        let agent = ScriptedAgent::start(|_| vec![events(&[&body])]);
        let mut stream = client(&agent, dialect).subscribe("t-1").await.unwrap();
        match stream.next().await {
            Some(Ok(Event::Artifact(update))) => assert!(update.append),
            Some(Ok(Event::Status(update))) => assert_eq!(update.status.state, TaskState::InputRequired),
            other => panic!("{other:?}"),
        }
        assert_eq!(stream.last_event_id(), None);
        assert!(stream.next().await.is_none());
    }
}

#[tokio::test]
async fn missing_method_is_rejected_without_a_request() {
    for dialect in [Dialect::Draft, Dialect::V03] {
        let options = ClientOptions::default().with_dialect(dialect);
        let client = Client::connect_with("http://127.0.0.1:1/", options).unwrap();
        let error = client.list_tasks(ListTasks::default()).await.unwrap_err();
        assert!(matches!(error, Error::NoMethod { method: "ListTasks", .. }), "{error:?}");
    }
}
