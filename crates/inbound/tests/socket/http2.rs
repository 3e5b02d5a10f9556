//! HTTP/2 without negotiation, on the same port.

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

use crate::common::{Server, Setup, member, request, said, within};

async fn connect(server: &Server, tasks: &TaskTracker) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (sender, connection) = within(handshake(TokioExecutor::new(), TokioIo::new(stream))).await.unwrap();
    tasks.spawn(connection);
    sender
}

fn post(server: &Server, body: String) -> Request<Full<Bytes>> {
    Request::post(format!("http://{}/", server.address)).body(Full::new(Bytes::from(body))).unwrap()
}

#[tokio::test]
async fn requests_share_a_connection() {
    let (server, tasks) = (Server::open().await, TaskTracker::new());
    let mut sender = connect(&server, &tasks).await;
    // One that waits does not hold up the others.
    let held = tasks.spawn(sender.send_request(post(&server, request("SendMessage", &said("hold", "")))));
    let mut last = String::new();
    while !last.contains(r#""totalSize":1"#) {
        let answer = within(sender.send_request(post(&server, request("ListTasks", "{}")))).await.unwrap();
        last = String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().into()).unwrap();
    }
    let cancel = request("CancelTask", &format!(r#"{{"id":"{}"}}"#, member(&last[20..], "id")));
    let canceled = within(sender.send_request(post(&server, cancel))).await.unwrap();
    assert_eq!(canceled.status(), 200);
    let answer = within(held).await.unwrap().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&answer).contains("TASK_STATE_CANCELED"));
}

#[tokio::test]
async fn a_stream_is_the_same_as_over_http_1() {
    let (server, tasks) = (Server::open().await, TaskTracker::new());
    let mut sender = connect(&server, &tasks).await;
    let body = request("SendStreamingMessage", &said("hi", ""));
    let answer = within(sender.send_request(post(&server, body))).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let body = within(answer.into_body().collect()).await.unwrap().to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    let numbers: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(numbers, ["1", "2", "3", "4"]);
    assert!(text.ends_with("\n\n"));
}

#[tokio::test]
async fn a_card_points_back_to_the_authority_it_was_asked_at() {
    let (server, tasks) = (Server::open().await, TaskTracker::new());
    let mut sender = connect(&server, &tasks).await;
    let ask = Request::get("http://agents.example.test:8080/.well-known/agent-card.json");
    let answer = within(sender.send_request(ask.body(Full::default()).unwrap())).await.unwrap();
    let body = within(answer.into_body().collect()).await.unwrap().to_bytes();
    assert_eq!(member(std::str::from_utf8(&body).unwrap(), "url"), "http://agents.example.test:8080/");
}

/// Sends up to so many messages with this stream window and reads none of the responses; fewer when the connection ends.
async fn unread(server: &Server, tasks: &TaskTracker, window: u32, count: usize) -> Vec<Incoming> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (mut sender, connection) = within(builder.handshake(TokioIo::new(stream))).await.unwrap();
    tasks.spawn(connection);
    let mut unread = Vec::new();
    for _ in 0..count {
        let message = post(server, request("SendMessage", &said(&"x".repeat(3 << 10), "")));
        let Ok(answer) = within(sender.send_request(message)).await else { break };
        unread.push(answer.into_body());
    }
    unread
}

async fn released(server: &Server) {
    within(async {
        while server.engine.memory().used() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

const IMPATIENT: Caps =
    Caps { write_window: Duration::from_millis(300), shutdown: Duration::from_millis(300), ..Caps::USUAL };

#[tokio::test]
async fn a_small_response_without_a_window_is_reset_and_released() {
    let (server, tasks) = (Setup { caps: IMPATIENT, ..Setup::default() }.open().await, TaskTracker::new());
    let unread = unread(&server, &tasks, 0, 3).await;
    assert_eq!(unread.len(), 3);
    released(&server).await;
    for body in unread {
        let error = within(body.collect()).await.unwrap_err();
        assert!(format!("{error:?}").contains("Reset"), "{error:?}");
    }
}

#[tokio::test]
async fn a_connection_whose_responses_are_not_read_to_their_end_is_shut_down() {
    let (server, tasks) = (Setup { caps: IMPATIENT, ..Setup::default() }.open().await, TaskTracker::new());
    // One byte of window lets hyper take the whole of each response, which it then holds.
    let unread = unread(&server, &tasks, 1, 40).await;
    assert!(unread.len() > 10, "{}", unread.len());
    released(&server).await;
}

#[tokio::test]
async fn a_reader_that_opens_no_window_loses_its_stream_and_no_other() {
    let caps = Caps { write_window: Duration::from_millis(300), ..Caps::default() };
    let (server, tasks) = (Setup { caps, ..Setup::default() }.open().await, TaskTracker::new());
    let stream = TcpStream::connect(server.address).await.unwrap();
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(100 << 10);
    let (mut sender, connection) = within(builder.handshake(TokioIo::new(stream))).await.unwrap();
    tasks.spawn(connection);
    let large = request("SendMessage", &said(&"x".repeat(1 << 20), ""));
    let unread = within(sender.send_request(post(&server, large.clone()))).await.unwrap();
    // Whoever reads is given everything, also in small pieces.
    let read = within(sender.send_request(post(&server, large))).await.unwrap();
    assert!(within(read.into_body().collect()).await.unwrap().to_bytes().len() > 2 << 20);
    tokio::time::sleep(caps.write_window * 3).await;
    let error = within(unread.into_body().collect()).await.unwrap_err();
    assert!(format!("{error:?}").contains("Reset"), "{error:?}");
    let answer = within(sender.send_request(post(&server, request("ListTasks", "{}")))).await.unwrap();
    assert_eq!(answer.status(), 200);
}
