//! What a connection may do, and how long it may take.

use std::time::Duration;

use a2ad_inbound::listen::Caps;

use crate::common::{Server, Setup, Wire, request, said, within};

const SHORT: Duration = Duration::from_millis(150);

async fn with(caps: Caps) -> Server {
    Setup { caps, ..Setup::default() }.open().await
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let server = Server::open().await;
    let mut wire = server.connect().await;
    for _ in 0..3 {
        wire.send("POST / HTTP/1.1", &request("SendMessage", &said("hi", ""))).await;
        assert_eq!(wire.answer().await.status, 200);
    }
    // Two at once are answered in order.
    let one = request("ListTasks", "{}");
    let two = one.replace(r#""id":1"#, r#""id":2"#);
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", one.len());
    wire.write(format!("{head}{one}{head}{two}").as_bytes()).await;
    assert!(wire.answer().await.body.starts_with(r#"{"jsonrpc":"2.0","id":1,"result""#));
    assert!(wire.answer().await.body.starts_with(r#"{"jsonrpc":"2.0","id":2,"result""#));
    wire.send("GET /healthz HTTP/1.1\r\nconnection: close", "").await;
    assert_eq!(wire.answer().await.status, 200);
    assert_eq!(wire.closed().await, "");
}

#[tokio::test]
async fn a_body_in_pieces_is_put_together() {
    let server = Server::open().await;
    let body = request("SendMessage", &said("hi", ""));
    let mut wire = server.connect().await;
    wire.write(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await;
    for piece in body.as_bytes().chunks(7) {
        wire.write(format!("{:x}\r\n{}\r\n", piece.len(), std::str::from_utf8(piece).unwrap()).as_bytes())
            .await;
    }
    wire.write(b"0\r\n\r\n").await;
    assert!(wire.answer().await.body.contains("TASK_STATE_COMPLETED"));
    // A client that asks first is told to go on.
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    wire.write(head.as_bytes()).await;
    assert_eq!(wire.head().await.status, 100);
    wire.write(body.as_bytes()).await;
    assert_eq!(wire.answer().await.status, 200);
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let server = with(Caps { first_bytes: SHORT, ..Caps::default() }).await;
    // Half of what HTTP/2 begins with is not enough either.
    let mut half = server.connect().await;
    half.write(b"PRI * HTTP/2.0\r\n").await;
    assert_eq!(half.closed().await, "");
    assert_eq!(server.connect().await.closed().await, "");
    // Beginning like HTTP/2 and saying no more is silence too.
    let mut wire = server.connect().await;
    wire.write(b"P").await;
    assert_eq!(wire.closed().await, "");
}

#[tokio::test]
async fn a_head_that_takes_too_long_is_not_waited_for() {
    let server = with(Caps { head: SHORT, ..Caps::default() }).await;
    let mut wire = server.connect().await;
    wire.write(b"POST / HTTP/1.1\r\nhost: x\r\n").await;
    let last = wire.closed().await;
    assert!(last.is_empty() || last.starts_with("HTTP/1.1 408"), "{last}");
}

#[tokio::test]
async fn a_head_that_is_no_http_or_far_too_large_ends_the_connection() {
    let server = with(Caps { head: SHORT, ..Caps::default() }).await;
    for bytes in [
        b"hello\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "x".repeat(300 << 10)).into_bytes(),
    ] {
        let mut wire = server.connect().await;
        wire.try_write(&bytes).await;
        let last = wire.closed().await;
        assert!(last.is_empty() || last.starts_with("HTTP/1.1 4"), "{last}");
    }
    assert_eq!(server.get("/healthz").await.status, 200);
}

/// Tries until the server takes another connection.
async fn served(server: &Server) {
    within(async {
        loop {
            let mut wire = server.connect().await;
            if is_served(&mut wire).await {
                return;
            }
        }
    })
    .await;
}

async fn is_served(wire: &mut Wire) -> bool {
    wire.try_send("GET /healthz HTTP/1.1\r\nconnection: close").await;
    wire.closed().await.starts_with("HTTP/1.1 200")
}

#[tokio::test]
async fn more_connections_than_may_be_are_closed_at_once() {
    for caps in [Caps { connections: 2, ..Caps::default() }, Caps { per_address: 2, ..Caps::default() }] {
        let server = with(caps).await;
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut wire = server.connect().await;
            wire.send("GET /healthz HTTP/1.1", "").await;
            assert_eq!(wire.answer().await.status, 200);
            open.push(wire);
        }
        assert!(!is_served(&mut server.connect().await).await);
        // Who is in is served on, and a place that is left is free.
        open[0].send("GET /healthz HTTP/1.1", "").await;
        assert_eq!(open[0].answer().await.status, 200);
        open.pop();
        served(&server).await;
    }
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_let_go() {
    let server = with(Caps { connections: 1, write_window: SHORT, ..Caps::default() }).await;
    let mut wire = server.connect().await;
    // Far more than the buffers of the two sockets hold.
    wire.send("POST / HTTP/1.1", &request("SendMessage", &said(&"x".repeat(12 << 20), ""))).await;
    served(&server).await;
    assert!(!wire.closed().await.ends_with("}}}"), "the answer went through; it was too small for this test");
}
