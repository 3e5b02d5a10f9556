//! Memory limits and idle timeouts.

use std::time::Duration;

use a2ad_inbound::listen::Caps;
use engine::{Limits, RegisteredAgent};

use crate::common::{Server, Setup, agents, hold_time, member, request, send_params};

const SHORT: Duration = Duration::from_millis(150);

/// A server with this memory limit in bytes.
async fn with_memory(memory: u64) -> Server {
    let limits = Limits { memory, ..Limits::default() };
    Setup { limits, ..Setup::default() }.open().await
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
    server.released().await;
}

#[tokio::test]
async fn responses_are_counted_until_they_are_read() {
    let server = with_memory(64 << 20).await;
    let answer = server.post_v1("/", &request("SendMessage", &send_params(&"x".repeat(6 << 20), ""))).await;
    let id = member(&answer.body, "id");
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
    // A page of whole tasks does not fit either; a page that shows little of them is small.
    let whole = request("ListTasks", r#"{"includeArtifacts":true}"#);
    assert_eq!(server.post_v1("/", &whole).await.status, 503);
    let small = request("ListTasks", r#"{"historyLength":0}"#);
    assert_eq!(server.post_v1("/", &small).await.status, 200);
    // The last quarter of the memory is reserved for small calls.
    assert_eq!(server.post_v1("/", &request("SendMessage", &send_params("hi", ""))).await.status, 200);
    drop(unread);
    server.released().await;
    assert_eq!(server.post_v1("/", &get).await.status, 200);
}

/// An agent whose card and OpenAPI document have megabytes, more than the buffers of the sockets.
fn agent_with_a_large_card() -> RegisteredAgent {
    let ids: Vec<String> = (0..2_000).map(|number| format!("{number}-{}", "x".repeat(2_000))).collect();
    agents::skilled(&ids.iter().map(String::as_str).collect::<Vec<_>>())
}

/// All clients of a card get the same buffer.
#[tokio::test]
async fn documents_are_counted_once_until_they_are_read() {
    let limits = Limits { memory: 32 << 20, ..Limits::default() };
    for path in ["/a2a/skilled/.well-known/agent-card.json", "/a2a/skilled/openapi.json"] {
        let server =
            Setup { limits, agents: vec![agent_with_a_large_card()], ..Setup::default() }.open().await;
        let mut unread = Vec::new();
        let mut length = 0;
        for _ in 0..3 {
            let mut wire = server.connect().await;
            wire.send(&format!("GET {path} HTTP/1.1"), "").await;
            let head = wire.head().await;
            assert_eq!(head.status, 200, "{path}");
            length = head.header("content-length").unwrap().parse().unwrap();
            unread.push(wire);
        }
        assert!(length > 4 << 20, "{path}: {length}");
        assert_eq!(server.engine.memory().used(), length, "{path}");
        drop(unread);
        server.released().await;
    }
}

/// Clients choose the host in a card, so each may be another document.
#[tokio::test]
async fn documents_over_the_memory_limit_are_refused() {
    let mut setup = Setup { agents: vec![agent_with_a_large_card()], ..Setup::default() };
    setup.limits.memory = 32 << 20;
    let server = setup.open().await;
    let mut unread = Vec::new();
    let refused = loop {
        let mut wire = server.connect().await;
        let head =
            format!("GET /a2a/skilled/.well-known/agent-card.json HTTP/1.1\r\nhost: x:{}", unread.len());
        wire.send(&head, "").await;
        let head = wire.head().await;
        if head.status != 200 {
            break head;
        }
        unread.push(wire);
        assert!(unread.len() < 10, "unread cards are not counted");
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(server.get("/a2a/echo/.well-known/agent-card.json").await.status, 200);
    drop(unread);
    server.released().await;
}

#[tokio::test]
async fn events_are_counted_until_they_are_read() {
    let server = with_memory(64 << 20).await;
    let hold = send_params(&format!("hold {}", "x".repeat(12 << 20)), "");
    let hold = hold.replace("]}}", r#"]},"configuration":{"returnImmediately":true}}"#);
    let id = member(&server.post_v1("/", &request("SendMessage", &hold)).await.body, "id");
    let subscribe = request("SubscribeToTask", &format!(r#"{{"id":"{id}"}}"#));
    // The first event has the whole task, which is more than the buffers of the sockets hold.
    let mut unread = Vec::new();
    let refused = loop {
        let mut wire = server.connect().await;
        wire.send("POST / HTTP/1.1\r\na2a-version: 1.0", &subscribe).await;
        let head = wire.head().await;
        if head.status != 200 {
            break head;
        }
        unread.push(wire);
        assert!(unread.len() < 10, "unread events are not counted");
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    drop(unread);
    server.released().await;
}

/// Proxies reuse a connection after about a minute.
#[tokio::test(start_paused = true)]
async fn default_idle_timeout_exceeds_75_seconds_and_default_head_timeout_is_10_seconds() {
    let _time = hold_time();
    let server = Server::open().await;
    let (mut idle, mut slow) = (server.connect().await, server.connect().await);
    for wire in [&mut idle, &mut slow] {
        wire.send("GET /healthz HTTP/1.1", "").await;
        assert_eq!(wire.answer().await.status, 200);
    }
    slow.write(b"GET /healthz HTTP/1.1\r\nhost: ").await;
    let (mut seconds, mut closed_after) = (0, None);
    while seconds < 76 {
        tokio::select! {
            biased;
            _ = slow.closed(), if closed_after.is_none() => closed_after = Some(seconds),
            () = tokio::time::advance(Duration::from_secs(1)) => seconds += 1,
        }
    }
    assert!(closed_after.is_some_and(|seconds| (9..=15).contains(&seconds)), "{closed_after:?}");
    idle.send("GET /healthz HTTP/1.1", "").await;
    assert_eq!(idle.answer().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn default_write_timeout_is_30_seconds_and_60_earned_ones() {
    let _time = hold_time();
    let server = Server::open().await;
    let mut wire = server.connect().await;
    // Far more than the buffers of the two sockets hold.
    wire.send("POST / HTTP/1.1", &request("SendMessage", &send_params(&"x".repeat(12 << 20), ""))).await;
    assert_eq!(wire.head().await.status, 200);
    let mut seconds = 0;
    while server.engine.memory().used() > 0 {
        tokio::time::advance(Duration::from_secs(1)).await;
        seconds += 1;
        assert!(seconds <= 100, "the response is still held");
    }
    // The buffers took megabytes at once, which earns the two windows at most.
    assert!(seconds >= 88, "disconnected after {seconds} s");
}

#[tokio::test]
async fn client_that_reads_below_the_minimum_rate_is_disconnected() {
    let caps = Caps { write_window: Duration::from_millis(500), min_write_rate: 1 << 30, ..Caps::default() };
    let server = Setup { caps, ..Setup::default() }.open().await;
    let mut wire = server.connect().await;
    wire.send("POST / HTTP/1.1", &request("SendMessage", &send_params(&"x".repeat(12 << 20), ""))).await;
    let head = wire.head().await;
    let length: usize = head.header("content-length").unwrap().parse().unwrap();
    let mut read = 0;
    while let Some(bytes) = wire.read_some(64 << 10).await {
        read += bytes;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(read < length, "the whole response was sent");
}

/// The kernel reports a socket as writable only when a large part of its buffer is free again.
#[tokio::test]
async fn client_that_reads_above_the_minimum_rate_is_served() {
    let caps = Caps { write_window: Duration::from_millis(500), min_write_rate: 4 << 10, ..Caps::default() };
    let server = Setup { caps, ..Setup::default() }.open().await;
    let mut wire = server.connect().await;
    wire.send("POST / HTTP/1.1", &request("SendMessage", &send_params(&"x".repeat(6 << 20), ""))).await;
    let head = wire.head().await;
    let length: usize = head.header("content-length").unwrap().parse().unwrap();
    let mut read = 0;
    while read < length {
        // 200 times the minimum.
        tokio::time::sleep(Duration::from_millis(40)).await;
        read += wire.read_some(32 << 10).await.unwrap_or_else(|| panic!("ended after {read} of {length}"));
    }
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

/// Longer than the server waits for bytes that do not arrive.
#[tokio::test(start_paused = true)]
async fn rejection_is_delivered_while_a_body_is_uploaded_for_a_minute() {
    let _time = hold_time();
    let server = Setup::with(|options| options.max_body_bytes = 64 << 10).open().await;
    let mut wire = server.connect().await;
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", 20 * (64 << 10));
    wire.write(head.as_bytes()).await;
    for _ in 0..20 {
        wire.write(&vec![b'x'; 64 << 10]).await;
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }
    let answer = wire.answer().await;
    assert_eq!(answer.status, 413, "{}", answer.body);
}

#[tokio::test]
async fn expect_continue_with_too_large_body_gets_the_error_at_once() {
    let server = Setup::with(|options| options.max_body_bytes = 64 << 10).open().await;
    let mut wire = server.connect().await;
    wire.write(b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 100000\r\n\r\n").await;
    assert_eq!(wire.head().await.status, 413);
}
