//! HTTP/1.1 over one connection: convenient requests, or any bytes, and responses as the server sent them.
//!
//! A checker must distinguish two cases that general clients do not: a connection lost before the response was complete
//! ([`Error::Cut`], which acknowledges nothing) and a response that is not HTTP ([`Error::Malformed`], which is a
//! finding). After an error a connection must not be used again.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

pub use crate::Error;
use crate::sse::{Blocks, Event};
use crate::{LIMIT, limited, malformed};

const MAX_LINE_BYTES: usize = 64 << 10;
const MAX_BODY_BYTES: usize = 64 << 20;
const READ_BYTES: usize = 64 << 10;

/// Sends a request on its own connection and reads the whole response.
pub async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Response, Error> {
    Connection::open(address).await?.exchange(method, path, headers, body).await
}

/// One connection to a server, for consecutive requests.
#[derive(Debug)]
pub struct Connection {
    stream: OwnedReadHalf,
    /// `None` while a request is being written.
    writer: Option<OwnedWriteHalf>,
    host: String,
    limit: Duration,
    /// Received but not yet consumed.
    ahead: BytesMut,
    /// What is still to be read of the current body.
    body: Framing,
    blocks: Blocks,
}

/// The status and headers of a response.
#[derive(Debug)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    /// The header lines in their order.
    pub headers: Headers,
}

/// A complete response.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The header lines in their order.
    pub headers: Headers,
    /// The body without its framing.
    pub body: Vec<u8>,
}

/// The names and values of the header lines of a response.
#[derive(Debug, Default)]
pub struct Headers(Vec<(String, String)>);

/// How the end of a body is determined.
#[derive(Clone, Copy, Debug)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

impl Connection {
    /// Connects to a server.
    #[expect(clippy::disallowed_methods, reason = "the driver of the tests has its own connections")]
    pub async fn open(address: SocketAddr) -> Result<Self, Error> {
        Self::over(limited(LIMIT, TcpStream::connect(address)).await?)
    }

    /// Uses a connected socket, whose options the caller has set.
    pub fn over(stream: TcpStream) -> Result<Self, Error> {
        stream.set_nodelay(true)?;
        let host = stream.peer_addr()?.to_string();
        let (stream, writer) = stream.into_split();
        let (ahead, blocks) = (BytesMut::new(), Blocks::default());
        let body = Framing::Length(0);
        Ok(Self { stream, writer: Some(writer), host, limit: LIMIT, ahead, body, blocks })
    }

    /// Sets the limit of each single wait.
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Gets a path.
    pub async fn get(&mut self, path: &str) -> Result<Response, Error> {
        self.exchange("GET", path, &[], &[]).await
    }

    /// Posts JSON.
    pub async fn post_json(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response, Error> {
        self.send_json(path, headers, body).await?;
        self.response().await
    }

    /// Sends any request, with the given headers and otherwise only those needed for framing.
    pub async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response, Error> {
        self.send(method, path, headers, body).await?;
        self.response().await
    }

    /// Sends a request with `write` and reads the response meanwhile, because a server may refuse a request and close
    /// the connection before it has received everything.
    pub async fn exchange_with(
        &mut self,
        write: impl AsyncFnOnce(&mut OwnedWriteHalf) -> io::Result<()>,
    ) -> Result<Response, Error> {
        let mut writer = self.writer.take().ok_or_else(|| cut(io::ErrorKind::NotConnected))?;
        let mut written = false;
        let result = {
            let (writing, reading) = (write(&mut writer), self.response());
            tokio::pin!(writing, reading);
            loop {
                tokio::select! {
                    biased;
                    response = &mut reading => break response,
                    _ = &mut writing, if !written => written = true,
                }
            }
        };
        self.writer = Some(writer);
        result
    }

    /// Posts JSON without reading the response.
    pub async fn send_json(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(), Error> {
        let json = [("Content-Type", "application/json")];
        let typed = if body.is_empty() { &[][..] } else { &json };
        self.send("POST", path, &[typed, headers].concat(), body).await
    }

    /// Sends a request without reading the response.
    pub async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(), Error> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|header| header.0.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.host);
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.write(&[head.as_bytes(), b"\r\n", body].concat()).await
    }

    /// Sends any bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let writer = self.writer.as_mut().ok_or_else(|| cut(io::ErrorKind::NotConnected))?;
        limited(self.limit, writer.write_all(bytes)).await
    }

    /// Reads a complete response.
    pub async fn response(&mut self) -> Result<Response, Error> {
        let Head { status, headers } = self.head().await?;
        Ok(Response { status, headers, body: self.body().await? })
    }

    /// Reads the head of a response; its body can be read afterwards.
    pub async fn head(&mut self) -> Result<Head, Error> {
        let line = self.line().await?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| malformed(&*line))?;
        let mut headers = Headers::default();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| malformed(&*line))?;
            headers.0.push((name.to_owned(), value.trim().to_owned()));
        }
        let head = Head { status, headers };
        self.body = head.framing()?;
        Ok(head)
    }

    /// Reads the rest of the body.
    pub async fn body(&mut self) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(bytes) = self.bytes().await? {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_BODY_BYTES {
                return Err(malformed("the body is too long"));
            }
        }
        Ok(body)
    }

    /// The next bytes of the body; `None` at its end.
    pub async fn bytes(&mut self) -> Result<Option<Bytes>, Error> {
        match self.body {
            Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                let bytes = self.take(left).await?;
                self.body = Framing::Length(0);
                Ok(Some(bytes))
            }
            Framing::Chunked => self.chunk().await,
            Framing::UntilClose => match self.ahead.is_empty() && self.fill().await? == 0 {
                true => Ok(None),
                false => Ok(Some(self.ahead.split().freeze())),
            },
        }
    }

    /// The next server-sent event of the body; `None` at its end.
    pub async fn event(&mut self) -> Result<Option<Event>, Error> {
        while let Some(block) = self.block().await? {
            if let Some(event) = Event::parse(&block) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The next server-sent event, comment or `retry:` line of the body, unchanged; `None` at its end.
    pub async fn block(&mut self) -> Result<Option<String>, Error> {
        loop {
            if let Some(block) = self.blocks.next_block()? {
                return Ok(Some(block));
            }
            match self.bytes().await? {
                Some(bytes) => self.blocks.push(&bytes)?,
                None => return self.blocks.finish().map(|()| None),
            }
        }
    }

    /// Reads some bytes as they are, at most so many; `None` when the server has closed the connection.
    pub async fn read_some(&mut self, most: usize) -> Result<Option<Bytes>, Error> {
        if self.ahead.is_empty() {
            self.ahead.reserve(most);
            let mut limited_buffer = bytes::BufMut::limit(&mut self.ahead, most);
            limited(self.limit, self.stream.read_buf(&mut limited_buffer)).await?;
        }
        Ok(Some(self.ahead.split().freeze()).filter(|bytes| !bytes.is_empty()))
    }

    /// Waits until the server closes or resets the connection; returns what it still sent.
    pub async fn closed(&mut self) -> Result<Vec<u8>, Error> {
        loop {
            match self.fill().await {
                Ok(0) | Err(Error::Cut(_)) => return Ok(self.ahead.split().to_vec()),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Resets the connection, like a client that disappears.
    pub fn reset(self) -> Result<(), Error> {
        // Dropping the writer would end the stream properly first.
        if let Some(writer) = self.writer {
            writer.forget();
        }
        Ok(self.stream.as_ref().set_zero_linger()?)
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let line = self.line().await?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16).map_err(|_| malformed("a chunk has no size"))?;
        if size == 0 {
            while !self.line().await?.is_empty() {}
            self.body = Framing::Length(0);
            return Ok(None);
        }
        let bytes = self.take(size).await?;
        if !self.line().await?.is_empty() {
            return Err(malformed("a chunk is longer than its size"));
        }
        Ok(Some(bytes))
    }

    async fn take(&mut self, length: usize) -> Result<Bytes, Error> {
        if length > MAX_BODY_BYTES {
            return Err(malformed("the declared length is too large"));
        }
        while self.ahead.len() < length {
            self.fill_more().await?;
        }
        Ok(self.ahead.split_to(length).freeze())
    }

    /// A line without its line break.
    async fn line(&mut self) -> Result<String, Error> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.ahead[searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.ahead.split_to(searched + at + 1);
                let line = line[..line.len() - 1].strip_suffix(b"\r").unwrap_or(&line[..line.len() - 1]);
                return String::from_utf8(line.to_vec()).map_err(|_| malformed("a line is not UTF-8"));
            }
            searched = self.ahead.len();
            if searched > MAX_LINE_BYTES {
                return Err(malformed("a line is too long"));
            }
            self.fill_more().await?;
        }
    }

    async fn fill_more(&mut self) -> Result<(), Error> {
        if self.fill().await? == 0 { Err(cut(io::ErrorKind::UnexpectedEof)) } else { Ok(()) }
    }

    async fn fill(&mut self) -> Result<usize, Error> {
        self.ahead.reserve(READ_BYTES);
        limited(self.limit, self.stream.read_buf(&mut self.ahead)).await
    }
}

impl Head {
    /// Whether the body is a stream of server-sent events.
    pub fn is_event_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    fn framing(&self) -> Result<Framing, Error> {
        if matches!(self.status, 100..=199 | 204 | 304) {
            return Ok(Framing::Length(0));
        }
        if self.headers.get("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
        {
            return Ok(Framing::Chunked);
        }
        match self.headers.get("content-length") {
            Some(length) => {
                length.parse().map(Framing::Length).map_err(|_| malformed("invalid content-length"))
            }
            None => Ok(Framing::UntilClose),
        }
    }
}

impl Response {
    /// The body as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<serde_json::Value, Error> {
        serde_json::from_slice(&self.body).map_err(|_| malformed(format!("not JSON: {}", self.text())))
    }
}

impl Headers {
    /// The value of a header by case-insensitive name; the first one, if it occurs twice.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The names and values of all header lines.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Every value of a header by case-insensitive name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |header| header.0.eq_ignore_ascii_case(name))
            .map(|header| header.1.as_str())
    }
}

fn cut(kind: io::ErrorKind) -> Error {
    Error::Cut(kind.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Serves the given bytes to one connection, whatever the request, and closes it.
    async fn serve_once(bytes: &'static [u8]) -> (SocketAddr, tokio::task::JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = tokio::task::JoinSet::new();
        server.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(bytes).await.unwrap();
        });
        (address, server)
    }

    async fn post(bytes: &'static [u8]) -> Result<Response, Error> {
        let (address, _server) = serve_once(bytes).await;
        Connection::open(address).await?.post_json("/", &[], b"{}").await
    }

    async fn events(bytes: &'static [u8]) -> (Vec<Event>, Result<(), Error>) {
        let (address, _server) = serve_once(bytes).await;
        let mut connection = Connection::open(address).await.unwrap();
        connection.send_json("/", &[], b"{}").await.unwrap();
        assert!(connection.head().await.unwrap().is_event_stream());
        let mut seen = Vec::new();
        loop {
            match connection.event().await {
                Ok(Some(event)) => seen.push(event),
                Ok(None) => return (seen, Ok(())),
                Err(error) => return (seen, Err(error)),
            }
        }
    }

    #[tokio::test]
    async fn both_framings_give_the_same_body() {
        let by_length = post(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await.unwrap();
        let by_chunks =
            post(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")
                .await
                .unwrap();
        assert_eq!((by_length.status, by_length.body.as_slice()), (200, b"hello".as_slice()));
        assert_eq!(by_length.body, by_chunks.body);
    }

    #[tokio::test]
    async fn headers_are_found_by_name_in_any_case() {
        let response = post(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-One:  a:b \r\n\r\n").await.unwrap();
        assert_eq!(response.headers.get("x-one"), Some("a:b"));
        assert_eq!(response.headers.get("x-two"), None);
    }

    #[tokio::test]
    async fn truncated_response_is_a_lost_connection() {
        let whole: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\n\r\n";
        for length in 0..whole.len() {
            let result = post(&whole[..length]).await;
            assert!(matches!(result, Err(Error::Cut(_))), "cut after {length} bytes");
        }
    }

    #[tokio::test]
    async fn non_http_bytes_are_malformed() {
        assert!(matches!(post(b"SSH-2.0-none\r\n").await, Err(Error::Malformed(_))));
    }

    #[tokio::test]
    async fn events_carry_their_own_id_and_comments_are_skipped() {
        let (seen, end) = events(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
              b\r\n:\n\nid: 7\nda\r\n9\r\nta: x\n\nda\r\n9\r\nta: y\n\n:\n\r\n0\r\n\r\n",
        )
        .await;
        let expected = [
            Event { id: Some("7".to_owned()), data: "x".to_owned() },
            Event { id: None, data: "y".to_owned() },
        ];
        assert_eq!(seen, expected);
        assert!(end.is_ok());
    }

    #[tokio::test]
    async fn stream_without_last_chunk_is_a_lost_connection() {
        let (seen, end) = events(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
              9\r\ndata: x\n\n\r\n",
        )
        .await;
        assert_eq!(seen.len(), 1);
        assert!(matches!(end, Err(Error::Cut(_))));
    }
}
