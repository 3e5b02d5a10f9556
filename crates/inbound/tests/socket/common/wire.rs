//! HTTP/1.1 over one connection, for tests: an error fails the test.

use std::net::SocketAddr;

use testkit::{
    Error,
    http1::{Connection, Headers},
};

use super::TIMEOUT;

/// One connection.
pub(crate) struct Wire(Connection);

/// The status and headers of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Headers,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: Head,
    pub(crate) body: String,
}

impl Head {
    /// The value of a header; a repeated header fails the test.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.all(name);
        let first = found.next();
        assert_eq!(found.next(), None, "{name} is repeated");
        first
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }
}

impl Wire {
    pub(super) async fn connect(address: SocketAddr) -> Self {
        Self(Connection::open(address).await.unwrap().with_limit(TIMEOUT))
    }

    /// Sends a request line with headers and a body of known length; `host` is `example.test` unless given.
    pub(crate) async fn send(&mut self, head: &str, body: &str) {
        let host = if head.contains("\r\nhost:") { "" } else { "host: example.test\r\n" };
        let length =
            if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        self.write(format!("{head}\r\n{host}{length}\r\n{body}").as_bytes()).await;
    }

    /// Sends a request without a body to a server that may have closed already.
    pub(crate) async fn try_send(&mut self, head: &str) {
        self.try_write(format!("{head}\r\nhost: x\r\n\r\n").as_bytes()).await;
    }

    /// Sends bytes to a server that may close meanwhile.
    pub(crate) async fn try_write(&mut self, bytes: &[u8]) {
        unless_closed(self.0.write(bytes).await);
    }

    /// Sends raw bytes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes).await.unwrap();
    }

    /// Reads a complete response.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let body = String::from_utf8(self.0.body().await.unwrap()).unwrap();
        Answer { status: head.status, head, body }
    }

    /// Reads the head of a response.
    pub(crate) async fn head(&mut self) -> Head {
        let head = self.0.head().await.unwrap();
        Head { status: head.status, headers: head.headers }
    }

    /// The next server-sent event with the blank line that ends it, or a single comment or `retry` line; `None` at the
    /// end of the body.
    pub(crate) async fn event(&mut self) -> Option<String> {
        self.0.block().await.unwrap()
    }

    /// Every event up to the end of the body.
    pub(crate) async fn events(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// Waits until the server closes the connection; returns what it still sent. A reset counts as a close.
    pub(crate) async fn closed(&mut self) -> String {
        String::from_utf8(self.0.closed().await.unwrap()).unwrap()
    }

    /// Reads some bytes as they are, at most so many; `None` when the server has closed or reset the connection.
    pub(crate) async fn read_some(&mut self, most: usize) -> Option<usize> {
        unless_closed(self.0.read_some(most).await).flatten().map(|bytes| bytes.len())
    }
}

/// The result; `None` if the connection is closed. Any other error fails the test.
fn unless_closed<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Cut(_)) => None,
        Err(error) => panic!("{error}"),
    }
}
