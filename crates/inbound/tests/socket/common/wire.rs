//! A minimal HTTP/1.1 client on a raw socket.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::with_timeout;

/// One connection.
pub(crate) struct Wire {
    stream: TcpStream,
    /// Received but not yet consumed.
    ahead: Vec<u8>,
    /// Body bytes of an incomplete event.
    partial: String,
}

/// The status and headers of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
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
        let mut found = self.headers.iter().filter(|header| header.0 == name).map(|header| header.1.as_str());
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
        let stream = with_timeout(TcpStream::connect(address)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, ahead: Vec::new(), partial: String::new() }
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
        let _ = with_timeout(self.stream.write_all(bytes)).await;
    }

    /// Sends raw bytes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        with_timeout(self.stream.write_all(bytes)).await.unwrap();
    }

    /// Reads a complete response.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let mut body = Vec::new();
        if head.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        } else if let Some(length) = head.header("content-length") {
            body = self.take(length.parse().unwrap()).await;
        }
        Answer { status: head.status, head, body: String::from_utf8(body).unwrap() }
    }

    /// Reads the head of a response.
    pub(crate) async fn head(&mut self) -> Head {
        let status = self.line().await;
        let status =
            status.strip_prefix("HTTP/1.1 ").unwrap_or_else(|| panic!("{status:?}"))[..3].parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        Head { status, headers }
    }

    /// The next server-sent event with the blank line that ends it, or a single comment or `retry` line; `None` at the
    /// end of the body.
    pub(crate) async fn event(&mut self) -> Option<String> {
        loop {
            let is_line = self.partial.starts_with(':') || self.partial.starts_with("retry:");
            let end = if is_line { "\n" } else { "\n\n" };
            if let Some(at) = self.partial.find(end) {
                let rest = self.partial.split_off(at + end.len());
                return Some(std::mem::replace(&mut self.partial, rest));
            }
            match self.chunk().await {
                Some(chunk) => self.partial.push_str(std::str::from_utf8(&chunk).unwrap()),
                None => {
                    assert_eq!(self.partial, "", "the body ends in the middle of an event");
                    return None;
                }
            }
        }
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
        let mut rest = std::mem::take(&mut self.ahead);
        let mut buffer = [0; 4_096];
        loop {
            match with_timeout(self.stream.read(&mut buffer)).await {
                Ok(0) | Err(_) => return String::from_utf8(rest).unwrap(),
                Ok(read) => rest.extend_from_slice(&buffer[..read]),
            }
        }
    }

    /// Reads some bytes as they are, at most so many; `None` when the server has closed or reset the connection.
    pub(crate) async fn read_some(&mut self, most: usize) -> Option<usize> {
        if !self.ahead.is_empty() {
            return Some(std::mem::take(&mut self.ahead).len());
        }
        let mut buffer = vec![0; most];
        with_timeout(self.stream.read(&mut buffer)).await.ok().filter(|read| *read > 0)
    }

    /// One chunk of a chunked body; `None` at its end.
    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let length = usize::from_str_radix(&self.line().await, 16).unwrap();
        let chunk = self.take(length).await;
        assert_eq!(self.line().await, "");
        (length > 0).then_some(chunk)
    }

    /// A line without its line break.
    async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.take(end + 2).await;
                return String::from_utf8(line[..end].to_vec()).unwrap();
            }
            self.fill().await;
        }
    }

    async fn take(&mut self, length: usize) -> Vec<u8> {
        while self.ahead.len() < length {
            self.fill().await;
        }
        let rest = self.ahead.split_off(length);
        std::mem::replace(&mut self.ahead, rest)
    }

    async fn fill(&mut self) {
        let read = with_timeout(self.stream.read_buf(&mut self.ahead)).await.unwrap();
        assert_ne!(read, 0, "the connection was closed after {:?}", String::from_utf8_lossy(&self.ahead));
    }
}
