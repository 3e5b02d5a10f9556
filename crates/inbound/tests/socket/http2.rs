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

/// The parts of HTTP/2 that a well-behaved client hides.
mod frames {
    use testkit::http1::Connection;

    pub(super) const DATA: u8 = 0;
    pub(super) const HEADERS: u8 = 1;
    pub(super) const RST_STREAM: u8 = 3;
    pub(super) const SETTINGS: u8 = 4;
    pub(super) const PING: u8 = 6;
    pub(super) const END_STREAM: u8 = 1;
    pub(super) const END_HEADERS: u8 = 4;

    /// A head of one byte, without the flag that it ends here.
    pub(super) const CONTINUATION_NEVER_COMES: &[u8] = &[0, 0, 1, HEADERS, END_STREAM, 0, 0, 0, 1, 0x82];

    pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct Frame {
        pub(super) kind: u8,
        pub(super) flags: u8,
        pub(super) stream: u32,
    }

    pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    /// The head of a request in HPACK, without indexing and without compression.
    pub(super) fn head(fields: &[(&str, &str)]) -> Vec<u8> {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
    }

    pub(super) struct Reader {
        connection: Connection,
        read: Vec<u8>,
    }

    impl Reader {
        pub(super) fn new(connection: Connection) -> Self {
            Self { connection, read: Vec::new() }
        }

        pub(super) async fn write(&mut self, frames: &[Vec<u8>]) {
            self.connection.write(&frames.concat()).await.unwrap();
        }

        /// The next frame; `None` when the server has closed the connection.
        pub(super) async fn next(&mut self) -> Option<Frame> {
            loop {
                if let Some(&[a, b, c, kind, flags, s, t, u, v]) = self.read.first_chunk::<9>() {
                    let length = u32::from_be_bytes([0, a, b, c]) as usize;
                    if self.read.len() >= 9 + length {
                        self.read.drain(..9 + length);
                        return Some(Frame { kind, flags, stream: u32::from_be_bytes([s, t, u, v]) });
                    }
                }
                self.read.extend(self.connection.read_some(64 << 10).await.ok()??);
            }
        }

        /// The frames up to and with the first for which this holds.
        pub(super) async fn until(&mut self, holds: impl Fn(&Frame) -> bool) -> Vec<Frame> {
            let mut frames = Vec::new();
            loop {
                frames.push(self.next().await.expect("the connection goes on"));
                if frames.last().is_some_and(&holds) {
                    return frames;
                }
            }
        }
    }
}

/// A connection that has sent the preface, its settings and these frames.
async fn raw(server: &Server, more: &[Vec<u8>]) -> frames::Reader {
    let connection = testkit::http1::Connection::open(server.address).await.unwrap();
    let mut reader = frames::Reader::new(connection);
    let opening = [frames::PREFACE.to_vec(), frames::frame(frames::SETTINGS, 0, 0, &[])];
    reader.write(&[&opening, more].concat()).await;
    reader
}

#[tokio::test]
async fn refused_body_is_discarded_without_a_reset() {
    use frames::{DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, frame, head};
    let server = Server::open().await;
    let head = head(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "localhost"),
        ("content-encoding", "gzip"),
        ("content-length", "10"),
    ]);
    let mut reader = raw(&server, &[frame(HEADERS, END_HEADERS, 1, &head)]).await;
    let mut seen = reader.until(|frame| frame.stream == 1 && frame.flags & END_STREAM != 0).await;
    // The response is complete: clients that still send must be able to read it.
    for (piece, flags) in [(&b"01234"[..], 0), (b"56789", END_STREAM)] {
        reader.write(&[frame(DATA, flags, 1, piece), frame(PING, 0, 0, &[0; 8])]).await;
        seen.extend(reader.until(|frame| frame.kind == PING).await);
    }
    assert!(!seen.iter().any(|frame| frame.kind == RST_STREAM), "{seen:?}");
}

#[tokio::test]
async fn connection_whose_peer_opens_no_window_is_closed() {
    let server = with(SHORT_WRITE_WINDOW).await;
    let channel = Channel::open_with_window(server.address, 0).await.unwrap();
    let unread = post(&channel, request("SendMessage", &send_params("hi", ""))).await;
    channel.closed().await.unwrap();
    drop(unread);
}

#[tokio::test]
async fn idle_connection_with_a_response_that_is_not_read_to_its_end_is_closed() {
    let server = with(Caps { idle: Duration::from_millis(300), ..SHORT_WRITE_WINDOW }).await;
    // With one byte of window hyper takes the whole response, and the call has ended for the server.
    let channel = Channel::open_with_window(server.address, 1).await.unwrap();
    let unread = post(&channel, request("SendMessage", &send_params("hi", ""))).await;
    channel.closed().await.unwrap();
    drop(unread);
}

#[tokio::test]
async fn frame_that_is_not_finished_ends_the_connection() {
    use frames::{CONTINUATION_NEVER_COMES, PING, SETTINGS, frame};
    let server = with(Caps { head: Duration::from_millis(300), ..Caps::default() }).await;
    let unfinished = [
        // The preface alone; the settings belong to it.
        vec![],
        frame(SETTINGS, 0, 0, &[])[..5].to_vec(),
        [frame(SETTINGS, 0, 0, &[]), frame(PING, 0, 0, &[0; 8])[..12].to_vec()].concat(),
        [frame(SETTINGS, 0, 0, &[]), CONTINUATION_NEVER_COMES.to_vec()].concat(),
    ];
    for bytes in unfinished {
        let connection = testkit::http1::Connection::open(server.address).await.unwrap();
        let mut reader = frames::Reader::new(connection);
        reader.write(&[frames::PREFACE.to_vec(), bytes]).await;
        while reader.next().await.is_some() {}
    }
    // A connection between two requests stays.
    let mut idle = raw(&server, &[]).await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    idle.write(&[frame(PING, 0, 0, &[0; 8])]).await;
    idle.until(|frame| frame.kind == PING).await;
}
