//! Keep-alive, timeouts and connection limits.

use std::time::Duration;

use a2ad_inbound::listen::Caps;
use engine::{AgentSettings, AuthMethod, AuthMethods};

use crate::common::{Server, Setup, Wire, request, send_params, with_timeout};

const SHORT: Duration = Duration::from_millis(150);

async fn with(caps: Caps) -> Server {
    Setup { caps, ..Setup::default() }.open().await
}

#[tokio::test]
async fn connection_serves_many_requests() {
    let server = Server::open().await;
    let mut wire = server.connect().await;
    for _ in 0..3 {
        wire.send("POST / HTTP/1.1", &request("SendMessage", &send_params("hi", ""))).await;
        assert_eq!(wire.answer().await.status, 200);
    }
    // Pipelined requests are answered in order.
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
async fn connection_announces_that_it_closes_before_a_refused_body_has_arrived() {
    let refused = [
        ("/a2a/echo", "content-encoding: gzip", 415),
        ("/a2a/approver", "x-api-key: unknown", 401),
        ("/a2a/approver", "x: y", 401),
    ];
    for (path, header, status) in refused {
        // Its first request with an API key has to wait until the keys are loaded.
        let server = Setup::with(|options| {
            let auth = AuthMethods::NONE.with(AuthMethod::ApiKey);
            options.agents = [("approver".into(), AgentSettings { auth, ..AgentSettings::default() })].into();
        })
        .open()
        .await;
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{header}\r\ncontent-length: 10\r\n\r\n");
        let mut wire = server.connect().await;
        wire.write(head.as_bytes()).await;
        let answer = wire.answer().await;
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{header}");
        wire.try_write(b"0123456789").await;
        assert_eq!(wire.closed().await, "");
        // After a body that has arrived, the connection goes on.
        let mut wire = server.connect().await;
        wire.write(format!("{head}0123456789").as_bytes()).await;
        let answer = wire.answer().await;
        assert_eq!((answer.status, answer.header("connection")), (status, None), "{header}");
        wire.send("GET /healthz HTTP/1.1", "").await;
        assert_eq!(wire.answer().await.status, 200);
    }
}

#[tokio::test]
async fn chunked_body_is_reassembled() {
    let server = Server::open().await;
    let body = request("SendMessage", &send_params("hi", ""));
    let mut wire = server.connect().await;
    wire.write(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await;
    for piece in body.as_bytes().chunks(7) {
        wire.write(format!("{:x}\r\n{}\r\n", piece.len(), std::str::from_utf8(piece).unwrap()).as_bytes())
            .await;
    }
    wire.write(b"0\r\n\r\n").await;
    assert!(wire.answer().await.body.contains("TASK_STATE_COMPLETED"));
    // `Expect: 100-continue` gets an interim response.
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
async fn connection_without_first_bytes_is_closed() {
    let server = with(Caps { first_bytes: SHORT, ..Caps::default() }).await;
    // Half of the HTTP/2 preface is not enough.
    let mut half = server.connect().await;
    half.write(b"PRI * HTTP/2.0\r\n").await;
    assert_eq!(half.closed().await, "");
    assert_eq!(server.connect().await.closed().await, "");
    // A first byte that could begin the HTTP/2 preface does not stop the timeout.
    let mut wire = server.connect().await;
    wire.write(b"P").await;
    assert_eq!(wire.closed().await, "");
}

#[tokio::test]
async fn slow_request_head_times_out() {
    let server = with(Caps { head: SHORT, ..Caps::default() }).await;
    let mut wire = server.connect().await;
    wire.write(b"POST / HTTP/1.1\r\nhost: x\r\n").await;
    let last = wire.closed().await;
    assert!(last.is_empty() || last.starts_with("HTTP/1.1 408"), "{last}");
}

#[tokio::test]
async fn invalid_or_too_large_head_closes_the_connection() {
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

/// Tries until the server accepts another connection.
async fn served(server: &Server) {
    with_timeout(async {
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
async fn connections_over_the_limit_are_closed() {
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
        // Open connections are still served, and a closed one frees its slot.
        open[0].send("GET /healthz HTTP/1.1", "").await;
        assert_eq!(open[0].answer().await.status, 200);
        open.pop();
        served(&server).await;
    }
}

#[tokio::test]
async fn connection_of_a_stalled_reader_is_closed() {
    let server = with(Caps { connections: 1, write_window: SHORT, ..Caps::default() }).await;
    let mut wire = server.connect().await;
    // More than the buffers of the two sockets hold.
    wire.send("POST / HTTP/1.1", &request("SendMessage", &send_params(&"x".repeat(12 << 20), ""))).await;
    served(&server).await;
    assert!(
        !wire.closed().await.ends_with("}}}"),
        "the response was sent completely; it is too small for this test"
    );
}
