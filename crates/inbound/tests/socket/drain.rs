//! A server that is told to stop.

use std::time::Duration;

use engine::{Answer as EngineAnswer, Call, Scope};
use protocol::{ListTasks, Operation, Reply};

use crate::common::{Server, member, request, said, within};

async fn hold(server: &Server) -> String {
    let params = said("hold", "").replace("]}}", r#"]},"configuration":{"returnImmediately":true}}"#);
    format!(r#"{{"id":"{}"}}"#, member(&server.call("echo", "SendMessage", &params).await.body, "id"))
}

#[tokio::test]
async fn streams_end_with_a_word_when_to_come_back() {
    let server = Server::open().await;
    let task = hold(&server).await;
    let mut wire = server.stream("echo", "SubscribeToTask", &task).await;
    assert!(wire.event().await.unwrap().starts_with("id: 2\n"));
    let mut idle = server.connect().await;
    idle.send("GET /healthz HTTP/1.1", "").await;
    idle.answer().await;
    let mut waiting = server.connect().await;
    waiting.send("POST / HTTP/1.1", &request("SendMessage", &said("hold", ""))).await;
    // It waits for its outcome: the server has read it when its task is there.
    while !server.call("echo", "ListTasks", "{}").await.body.contains(r#""totalSize":2"#) {}

    server.drain.cancel();
    within(server.engine.drain(Duration::ZERO)).await;
    assert_eq!(wire.event().await.as_deref(), Some("retry: 1000\n"));
    assert_eq!(wire.event().await, None);
    assert_eq!(wire.closed().await, "");
    assert_eq!(idle.closed().await, "");
    // It is told which task goes on without it.
    let answer = waiting.answer().await;
    let page = server
        .engine
        .call(Call::new(Scope::anonymous("default", "echo")), Operation::ListTasks(ListTasks::default()));
    let Ok(EngineAnswer::Reply(Reply::Tasks(page))) = within(page).await else { panic!("no list") };
    assert!(
        page.tasks.iter().any(|task| answer.body.contains(&format!(r#""taskId":"{}""#, task.id))),
        "{}",
        answer.body
    );
    assert!(answer.body.contains("goes on, get it later"), "{}", answer.body);
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert!(
        answer.body.contains(r#""code":-32000"#) && answer.body.contains("UNAVAILABLE"),
        "{}",
        answer.body
    );
    within(server.serving).await.unwrap();
}

#[tokio::test]
async fn a_request_under_way_is_answered_and_nothing_new_is_taken() {
    let server = Server::open().await;
    let body = request("SendMessage", &said("hi", ""));
    let mut wire = server.connect().await;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    wire.write(head.as_bytes()).await;
    assert_eq!(wire.head().await.status, 100);
    server.drain.cancel();
    wire.write(body.as_bytes()).await;
    let answer = wire.answer().await;
    assert!(answer.body.contains("TASK_STATE_COMPLETED"), "{}", answer.body);
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(wire.closed().await, "");
    within(server.serving).await.unwrap();
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err());
}
