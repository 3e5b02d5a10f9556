//! An HTTP function that the test plays itself: it takes requests from a socket and responds with bytes.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::engine_host::with_timeout;

/// A listener on a free port of the loopback interface.
pub(crate) struct Function {
    listener: TcpListener,
}

/// A request, and the connection that waits for its response.
pub(crate) struct Received {
    /// The first line.
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    stream: TcpStream,
}

impl Function {
    pub(crate) async fn start() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// A URL of this function.
    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address())
    }

    /// The next request, on a new connection.
    pub(crate) async fn request(&self) -> Received {
        with_timeout(async {
            let (stream, _) = self.listener.accept().await.unwrap();
            Received::read(stream).await
        })
        .await
    }
}

impl Received {
    async fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let end = loop {
            let found = bytes.windows(4).position(|end| end == b"\r\n\r\n");
            match found {
                Some(at) => break at + 4,
                None => assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "incomplete request"),
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap().to_owned();
        let header =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let headers: Vec<_> = lines.filter_map(header).collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
        while bytes.len() < end + length {
            assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "incomplete body");
        }
        let body = String::from_utf8(bytes.split_off(end)).unwrap();
        Self { line, headers, body, stream }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Responds with a status, headers and a whole body, and closes the connection.
    pub(crate) async fn respond(self, status: &str, headers: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let mut connection = self;
        let head = format!("{status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}", body.len());
        connection.send(&format!("HTTP/1.1 {head}\r\n")).await;
        connection.stream.write_all(body).await.unwrap();
    }

    /// Responds with a body of this media type.
    pub(crate) async fn respond_with(self, media_type: &str, body: impl AsRef<[u8]>) {
        self.respond("200 OK", &format!("content-type: {media_type}\r\n"), body).await;
    }

    /// Begins a response with a body of unknown length.
    pub(crate) async fn begin(&mut self, media_type: &str) {
        let head = format!("content-type: {media_type}\r\ntransfer-encoding: chunked");
        self.send(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n")).await;
    }

    /// Sends a piece of such a body.
    pub(crate) async fn piece(&mut self, bytes: &[u8]) {
        self.send(&format!("{:x}\r\n", bytes.len())).await;
        self.stream.write_all(bytes).await.unwrap();
        self.send("\r\n").await;
    }

    /// Ends such a body.
    pub(crate) async fn end(mut self) {
        self.send("0\r\n\r\n").await;
    }

    /// Waits until the other side closes the connection.
    pub(crate) async fn closed(mut self) {
        let mut rest = Vec::new();
        // A reset is a closed connection too.
        let _ = with_timeout(self.stream.read_to_end(&mut rest)).await;
    }

    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }
}
