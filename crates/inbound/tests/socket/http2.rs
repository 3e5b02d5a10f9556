//! HTTP/2 with prior knowledge, on the same port.

use std::time::Duration;

use a2ad_inbound::listen::Caps;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

use crate::common::{Server, Setup, member, request, send_params, with_timeout};

async fn connect(server: &Server, tasks: &TaskTracker) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (sender, connection) =
        with_timeout(handshake(TokioExecutor::new(), TokioIo::new(stream))).await.unwrap();
    tasks.spawn(connection);
    sender
}

fn post(server: &Server, body: String) -> Request<Full<Bytes>> {
    Request::post(format!("http://{}/", server.address)).body(Full::new(Bytes::from(body))).unwrap()
}

#[tokio::test]
async fn requests_share_one_connection() {
    let (server, tasks) = (Server::open().await, TaskTracker::new());
    let mut sender = connect(&server, &tasks).await;
    // A waiting request does not block the others.
    let held =
        tasks.spawn(sender.send_request(post(&server, request("SendMessage", &send_params("hold", "")))));
    let mut last = String::new();
    while !last.contains(r#""totalSize":1"#) {
        let answer =
            with_timeout(sender.send_request(post(&server, request("ListTasks", "{}")))).await.unwrap();
        last = String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().into()).unwrap();
    }
    let cancel = request("CancelTask", &format!(r#"{{"id":"{}"}}"#, member(&last[20..], "id")));
    let canceled = with_timeout(sender.send_request(post(&server, cancel))).await.unwrap();
    assert_eq!(canceled.status(), 200);
    let answer = with_timeout(held).await.unwrap().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&answer).contains("TASK_STATE_CANCELED"));
}

#[tokio::test]
async fn stream_is_the_same_as_over_http_1() {
    let (server, tasks) = (Server::open().await, TaskTracker::new());
    let mut sender = connect(&server, &tasks).await;
    let body = request("SendStreamingMessage", &send_params("hi", ""));
    let answer = with_timeout(sender.send_request(post(&server, body))).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let body = with_timeout(answer.into_body().collect()).await.unwrap().to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    let numbers: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(numbers, ["1", "2", "3", "4"]);
    assert!(text.ends_with("\n\n"));
}

#[tokio::test]
async fn card_url_has_the_requested_authority() {
    let (server, tasks) = (Server::open().await, TaskTracker::new());
    let mut sender = connect(&server, &tasks).await;
    let ask = Request::get("http://agents.example.test:8080/.well-known/agent-card.json");
    let answer = with_timeout(sender.send_request(ask.body(Full::default()).unwrap())).await.unwrap();
    let body = with_timeout(answer.into_body().collect()).await.unwrap().to_bytes();
    assert_eq!(member(std::str::from_utf8(&body).unwrap(), "url"), "http://agents.example.test:8080/");
}

/// Sends up to `count` messages with this stream window and reads none of the responses; fewer if the connection ends.
async fn unread(server: &Server, tasks: &TaskTracker, window: u32, count: usize) -> Vec<Incoming> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (mut sender, connection) = with_timeout(builder.handshake(TokioIo::new(stream))).await.unwrap();
    tasks.spawn(connection);
    let mut unread = Vec::new();
    for _ in 0..count {
        let message = post(server, request("SendMessage", &send_params(&"x".repeat(3 << 10), "")));
        let Ok(answer) = with_timeout(sender.send_request(message)).await else { break };
        unread.push(answer.into_body());
    }
    unread
}

async fn released(server: &Server) {
    with_timeout(async {
        while server.engine.memory().used() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

const SHORT_WRITE_WINDOW: Caps =
    Caps { write_window: Duration::from_millis(300), shutdown: Duration::from_millis(300), ..Caps::USUAL };

#[tokio::test]
async fn small_response_without_window_is_reset_and_released() {
    let (server, tasks) =
        (Setup { caps: SHORT_WRITE_WINDOW, ..Setup::default() }.open().await, TaskTracker::new());
    let unread = unread(&server, &tasks, 0, 3).await;
    assert_eq!(unread.len(), 3);
    released(&server).await;
    for body in unread {
        let error = with_timeout(body.collect()).await.unwrap_err();
        assert!(format!("{error:?}").contains("Reset"), "{error:?}");
    }
}

#[tokio::test]
async fn connection_with_too_many_unread_responses_is_closed() {
    let (server, tasks) =
        (Setup { caps: SHORT_WRITE_WINDOW, ..Setup::default() }.open().await, TaskTracker::new());
    // With one byte of window hyper takes the whole of each response, which it then buffers.
    let unread = unread(&server, &tasks, 1, 40).await;
    assert!(unread.len() > 10, "{}", unread.len());
    released(&server).await;
}

#[tokio::test]
async fn stream_without_window_is_reset_and_others_continue() {
    let caps = Caps { write_window: Duration::from_millis(300), ..Caps::default() };
    let (server, tasks) = (Setup { caps, ..Setup::default() }.open().await, TaskTracker::new());
    let stream = TcpStream::connect(server.address).await.unwrap();
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(100 << 10);
    let (mut sender, connection) = with_timeout(builder.handshake(TokioIo::new(stream))).await.unwrap();
    tasks.spawn(connection);
    let large = request("SendMessage", &send_params(&"x".repeat(1 << 20), ""));
    let unread = with_timeout(sender.send_request(post(&server, large.clone()))).await.unwrap();
    // A client that reads gets everything, also in small pieces.
    let read = with_timeout(sender.send_request(post(&server, large))).await.unwrap();
    assert!(with_timeout(read.into_body().collect()).await.unwrap().to_bytes().len() > 2 << 20);
    tokio::time::sleep(caps.write_window * 3).await;
    let error = with_timeout(unread.into_body().collect()).await.unwrap_err();
    assert!(format!("{error:?}").contains("Reset"), "{error:?}");
    let answer = with_timeout(sender.send_request(post(&server, request("ListTasks", "{}")))).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn idle_event_stream_is_not_reset() {
    let (server, tasks) =
        (Setup { caps: SHORT_WRITE_WINDOW, ..Setup::default() }.open().await, TaskTracker::new());
    let mut sender = connect(&server, &tasks).await;
    let hold = send_params("hold", "").replace("]}}", r#"]},"configuration":{"returnImmediately":true}}"#);
    let id = member(&server.call("echo", "SendMessage", &hold).await.body, "id");
    let task = format!(r#"{{"id":"{id}"}}"#);
    let subscribe = post(&server, request("SubscribeToTask", &task));
    let mut body = with_timeout(sender.send_request(subscribe)).await.unwrap().into_body();
    let first = with_timeout(body.frame()).await.unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(b"id: 2\n"), "{first:?}");
    tokio::time::sleep(SHORT_WRITE_WINDOW.write_window * 3).await;
    server.call("echo", "CancelTask", &task).await;
    let rest = with_timeout(body.collect()).await.expect("the stream is not reset").to_bytes();
    assert!(String::from_utf8_lossy(&rest).contains("TASK_STATE_CANCELED"), "{rest:?}");
}
