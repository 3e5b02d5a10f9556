//! Graceful shutdown of the server.

use std::time::Duration;

use engine::{Call, CallResponse as EngineAnswer, Scope};
use protocol::{ListTasks, Operation, Reply};

use crate::common::{Server, request, send_params, with_timeout};

async fn hold(server: &Server) -> String {
    format!(r#"{{"id":"{}"}}"#, server.hold().await)
}

#[tokio::test]
async fn streams_end_with_a_retry_hint_at_shutdown() {
    let server = Server::open().await;
    let task = hold(&server).await;
    let mut wire = server.stream("echo", "SubscribeToTask", &task).await;
    assert!(wire.event().await.unwrap().starts_with("id: 2\n"));
    let mut idle = server.connect().await;
    idle.send("GET /healthz HTTP/1.1", "").await;
    idle.answer().await;
    let mut waiting = server.connect().await;
    waiting.send("POST / HTTP/1.1", &request("SendMessage", &send_params("hold", ""))).await;
    // This call waits for its outcome; the server has read it as soon as its task exists.
    while !server.call("echo", "ListTasks", "{}").await.body.contains(r#""totalSize":2"#) {}

    server.drain.cancel();
    with_timeout(server.engine.drain(Duration::ZERO)).await;
    assert_eq!(wire.event().await.as_deref(), Some("retry: 1000\n"));
    assert_eq!(wire.event().await, None);
    assert_eq!(wire.closed().await, "");
    assert_eq!(idle.closed().await, "");
    // The error names the task that continues.
    let answer = waiting.answer().await;
    let page = server
        .engine
        .call(Call::new(Scope::anonymous("default", "echo")), Operation::ListTasks(ListTasks::default()));
    let Ok(EngineAnswer::Reply(Reply::Tasks(page))) = with_timeout(page).await else { panic!("no list") };
    assert!(
        page.tasks.iter().any(|task| answer.body.contains(&format!(r#""taskId":"{}""#, task.id))),
        "{}",
        answer.body
    );
    assert!(answer.body.contains("continues, get it later"), "{}", answer.body);
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert!(
        answer.body.contains(r#""code":-32000"#) && answer.body.contains("UNAVAILABLE"),
        "{}",
        answer.body
    );
    with_timeout(server.serving).await.unwrap();
}

#[tokio::test]
async fn call_of_run_returns_its_unfinished_task_at_shutdown() {
    let server = Server::open().await;
    let mut waiting = server.connect().await;
    waiting.send("POST /run/echo HTTP/1.1\r\ncontent-type: text/plain", "hold").await;
    // The agent has begun, so the call waits for its outcome.
    while !server.call("echo", "ListTasks", "{}").await.body.contains("TASK_STATE_WORKING") {}
    server.drain.cancel();
    with_timeout(server.engine.drain(Duration::ZERO)).await;
    let answer = waiting.answer().await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let task = answer.header("a2ad-task").unwrap();
    assert_eq!(answer.header("location"), Some(format!("/a2a/echo/tasks/{task}").as_str()));
    with_timeout(server.serving).await.unwrap();
}

#[tokio::test]
async fn request_in_progress_is_completed_and_new_connections_are_refused() {
    let server = Server::open().await;
    let body = request("SendMessage", &send_params("hi", ""));
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
    with_timeout(server.serving).await.unwrap();
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err());
}
