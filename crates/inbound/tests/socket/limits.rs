//! Memory limits and idle timeouts.

use std::time::Duration;

use a2ad_inbound::listen::Caps;
use engine::Limits;

use crate::common::{Server, Setup, request, send_params, with_timeout};

const SHORT: Duration = Duration::from_millis(150);

/// A server with this memory limit in bytes.
async fn with_memory(memory: u64) -> Server {
    let limits = Limits { memory, ..Limits::default() };
    Setup { limits, ..Setup::default() }.open().await
}

/// Waits until all memory is released.
async fn released(server: &Server) {
    with_timeout(async {
        while server.engine.memory().used() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn request_over_the_memory_limit_is_rejected_and_a_small_one_is_served() {
    let server = with_memory(4 << 20).await;
    let large = request("SendMessage", &send_params(&"x".repeat(2 << 20), ""));
    let answer = server.post_v1("/", &large).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{}", answer.body);
    assert!(answer.body.contains("limits.memory") && answer.body.contains("UNAVAILABLE"), "{}", answer.body);
    // The length of a chunked body is unknown until it has arrived.
    let mut wire = server.connect().await;
    wire.write(b"POST / HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\ntransfer-encoding: chunked\r\n\r\n").await;
    wire.try_write(format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len()).as_bytes()).await;
    assert_eq!(wire.answer().await.status, 503);
    assert_eq!(server.post_v1("/", &request("SendMessage", &send_params("hi", ""))).await.status, 200);
    released(&server).await;
}

#[tokio::test]
async fn responses_are_counted_until_they_are_read() {
    let server = with_memory(64 << 20).await;
    let answer = server.post_v1("/", &request("SendMessage", &send_params(&"x".repeat(6 << 20), ""))).await;
    let id = crate::common::member(&answer.body, "id");
    let get = request("GetTask", &format!(r#"{{"id":"{id}"}}"#));
    // More than the buffers of the sockets, and the client does not read.
    let mut unread = Vec::new();
    let refused = loop {
        let mut wire = server.connect().await;
        wire.send("POST / HTTP/1.1\r\na2a-version: 1.0", &get).await;
        let head = wire.head().await;
        if head.status != 200 {
            break head;
        }
        unread.push(wire);
        assert!(unread.len() < 20, "unread responses are not counted");
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    // The last quarter of the memory is reserved for small calls.
    assert_eq!(server.post_v1("/", &request("SendMessage", &send_params("hi", ""))).await.status, 200);
    drop(unread);
    released(&server).await;
    assert_eq!(server.post_v1("/", &get).await.status, 200);
}

#[tokio::test]
async fn idle_connection_is_kept_longer_than_an_unfinished_head() {
    let caps = Caps { head: SHORT, ..Caps::default() };
    let server = Setup { caps, ..Setup::default() }.open().await;
    let mut idle = server.connect().await;
    let mut slow = server.connect().await;
    for wire in [&mut idle, &mut slow] {
        wire.send("GET /healthz HTTP/1.1", "").await;
        assert_eq!(wire.answer().await.status, 200);
    }
    slow.write(b"GET /healthz HTTP/1.1\r\nhost: ").await;
    let last = slow.closed().await;
    assert!(last.is_empty() || last.starts_with("HTTP/1.1 408"), "{last}");
    tokio::time::sleep(SHORT * 4).await;
    idle.send("GET /healthz HTTP/1.1", "").await;
    assert_eq!(idle.answer().await.status, 200);
}

#[tokio::test]
async fn idle_connection_is_closed_after_its_timeout() {
    let caps = Caps { idle: SHORT, ..Caps::default() };
    let server = Setup { caps, ..Setup::default() }.open().await;
    let mut wire = server.connect().await;
    wire.send("GET /healthz HTTP/1.1", "").await;
    assert_eq!(wire.answer().await.status, 200);
    assert_eq!(wire.closed().await, "");
}

#[tokio::test]
async fn too_large_body_gets_its_error_over_a_slow_connection() {
    let server = Setup::with(|options| options.max_body_bytes = 64 << 10).open().await;
    let mut wire = server.connect().await;
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", 20 * (64 << 10));
    wire.write(head.as_bytes()).await;
    // A client that reads the response only after it has written everything; a reset would fail one of the writes.
    for _ in 0..20 {
        wire.write(&vec![b'x'; 64 << 10]).await;
        tokio::time::sleep(Duration::from_millis(70)).await;
    }
    let answer = wire.answer().await;
    assert_eq!(answer.status, 413, "{}", answer.body);
    assert_eq!(wire.closed().await, "");
}

#[tokio::test]
async fn expect_continue_with_too_large_body_gets_the_error_at_once() {
    let server = Setup::with(|options| options.max_body_bytes = 64 << 10).open().await;
    let mut wire = server.connect().await;
    wire.write(b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 100000\r\n\r\n").await;
    assert_eq!(wire.head().await.status, 413);
}
