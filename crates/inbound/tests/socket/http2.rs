//! HTTP/2 with prior knowledge, on the same port.

use std::time::Duration;

use a2ad_inbound::listen::Caps;
use http::Request;
use testkit::http2::{Body, Channel, Response, full};
use tokio_util::task::TaskTracker;

use crate::common::{Server, Setup, hosts, member, request, send_params, with_timeout};

async fn connect(server: &Server) -> Channel {
    Channel::open(server.address).await.unwrap()
}

async fn post(channel: &Channel, body: String) -> Response {
    channel.request(request_of(channel, body)).await.unwrap()
}

fn request_of(channel: &Channel, body: String) -> Request<Body> {
    Request::post(channel.uri("/")).body(full(body)).unwrap()
}

async fn text(mut response: Response) -> String {
    String::from_utf8(response.body().await.unwrap().into()).unwrap()
}

async fn with(caps: Caps) -> Server {
    Setup { caps, ..Setup::default() }.open().await
}

#[tokio::test]
async fn requests_share_one_connection() {
    let (server, tasks) = (Server::open().await, TaskTracker::new());
    let channel = connect(&server).await;
    // A waiting request does not block the others.
    let waiting = channel.clone();
    let held = tasks.spawn(async move {
        text(post(&waiting, request("SendMessage", &send_params("hold", ""))).await).await
    });
    let mut last = String::new();
    while !last.contains(r#""totalSize":1"#) {
        last = text(post(&channel, request("ListTasks", "{}")).await).await;
    }
    let cancel = request("CancelTask", &format!(r#"{{"id":"{}"}}"#, member(&last[20..], "id")));
    assert_eq!(post(&channel, cancel).await.status, 200);
    assert!(with_timeout(held).await.unwrap().contains("TASK_STATE_CANCELED"));
}

#[tokio::test]
async fn every_response_has_a_date() {
    let server = Server::open().await;
    let answer = post(&connect(&server).await, request("ListTasks", "{}")).await;
    let date = answer.headers["date"].to_str().unwrap();
    assert!(date.ends_with(" GMT"), "{date}");
    assert_eq!(date.len(), "Fri, 02 Jan 2026 03:04:05 GMT".len());
}

#[tokio::test]
async fn stream_is_the_same_as_over_http_1() {
    let server = Server::open().await;
    let body = request("SendStreamingMessage", &send_params("hi", ""));
    let answer = post(&connect(&server).await, body).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let text = text(answer).await;
    let numbers: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(numbers, ["1", "2", "3", "4"]);
    assert!(text.ends_with("\n\n"));
}

#[tokio::test]
async fn card_url_has_the_requested_authority() {
    let server = Setup::with(|options| options.allowed_hosts = hosts(&["agents.example.test"])).open().await;
    let ask = Request::get("http://agents.example.test:8080/.well-known/agent-card.json");
    let answer = connect(&server).await.request(ask.body(full("")).unwrap()).await.unwrap();
    assert_eq!(member(&text(answer).await, "url"), "http://agents.example.test:8080/");
}

/// Sends up to `count` messages with this stream window and reads none of the responses; fewer if the connection ends.
async fn unread(server: &Server, window: u32, count: usize) -> Vec<Response> {
    let channel = Channel::open_with_window(server.address, window).await.unwrap();
    let mut unread = Vec::new();
    for _ in 0..count {
        let message = request("SendMessage", &send_params(&"x".repeat(3 << 10), ""));
        match channel.request(request_of(&channel, message)).await {
            Ok(answer) => unread.push(answer),
            Err(testkit::Error::Cut(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
    unread
}

/// Checks that the server has reset a stream.
async fn check_reset(mut response: Response) {
    let error = response.body().await.unwrap_err();
    assert!(format!("{error:?}").contains("Reset"), "{error:?}");
}

const SHORT_WRITE_WINDOW: Caps =
    Caps { write_window: Duration::from_millis(300), shutdown: Duration::from_millis(300), ..Caps::USUAL };

#[tokio::test]
async fn small_response_without_window_is_reset_and_released() {
    let server = with(SHORT_WRITE_WINDOW).await;
    let unread = unread(&server, 0, 3).await;
    assert_eq!(unread.len(), 3);
    server.released().await;
    for response in unread {
        check_reset(response).await;
    }
}

#[tokio::test]
async fn connection_with_too_many_unread_responses_is_closed() {
    let server = with(SHORT_WRITE_WINDOW).await;
    // With one byte of window hyper takes the whole of each response, which it then buffers.
    let unread = unread(&server, 1, 40).await;
    assert!(unread.len() > 10, "{}", unread.len());
    server.released().await;
}

#[tokio::test]
async fn stream_without_window_is_reset_and_others_continue() {
    let caps = Caps { write_window: Duration::from_millis(300), ..Caps::default() };
    let server = with(caps).await;
    let channel = Channel::open_with_window(server.address, 100 << 10).await.unwrap();
    let large = request("SendMessage", &send_params(&"x".repeat(1 << 20), ""));
    let unread = post(&channel, large.clone()).await;
    // A client that reads gets everything, also in small pieces.
    assert!(text(post(&channel, large).await).await.len() > 2 << 20);
    tokio::time::sleep(caps.write_window * 3).await;
    check_reset(unread).await;
    assert_eq!(post(&channel, request("ListTasks", "{}")).await.status, 200);
}

#[tokio::test]
async fn idle_event_stream_is_not_reset() {
    let server = with(SHORT_WRITE_WINDOW).await;
    let task = format!(r#"{{"id":"{}"}}"#, server.hold().await);
    let mut answer = post(&connect(&server).await, request("SubscribeToTask", &task)).await;
    let first = answer.bytes().await.unwrap().unwrap();
    assert!(first.starts_with(b"id: 2\n"), "{first:?}");
    tokio::time::sleep(SHORT_WRITE_WINDOW.write_window * 3).await;
    server.call("echo", "CancelTask", &task).await;
    let rest = answer.body().await.expect("the stream is not reset");
    assert!(String::from_utf8_lossy(&rest).contains("TASK_STATE_CANCELED"), "{rest:?}");
}
