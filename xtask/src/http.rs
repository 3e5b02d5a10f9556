//! A small HTTP/1.1 client for the tests: one keep-alive connection, JSON requests, complete responses and
//! server-sent events.
//!
//! It exists because a checker must distinguish two cases that general clients do not: a connection lost before the
//! response was complete ([`Error::Cut`], which acknowledges nothing) and a response that is not HTTP
//! ([`Error::Malformed`], which is a finding). Deliberately not here: TLS, redirects, compression, proxies,
//! pipelining, retries, and time limits, which belong to the caller.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const MAX_LINE_BYTES: u64 = 64 * 1024;
const MAX_BODY_BYTES: u64 = 64 * 1024 * 1024;

/// One connection to the server, for consecutive requests; after an error it must not be used again.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

/// A complete response.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

/// The header lines of a response, unchanged.
pub(crate) struct Headers(Vec<String>);

/// The response to a request for a stream.
pub(crate) enum StreamResponse {
    Events(Events),
    Response(Response),
}

/// One server-sent event: its `id:` line, if any, and its data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// The events of one response, in order. Owns the connection, which is closed with it.
pub(crate) struct Events {
    pub(crate) headers: Headers,
    connection: Connection,
    framing: Framing,
    unread: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum Error {
    /// The connection was lost; whether the request took effect is unknown.
    Cut(io::Error),
    /// The server sent something that is not HTTP.
    Malformed(String),
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), address })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Response, Error> {
        self.send("GET", path, &[], &[]).await?;
        self.response().await
    }

    pub(crate) async fn post_json(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response, Error> {
        self.send("POST", path, headers, body).await?;
        self.response().await
    }

    /// Any request, with the given headers and otherwise only those needed for framing.
    pub(crate) async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response, Error> {
        self.write(method, path, headers, body).await?;
        self.response().await
    }

    /// Posts and returns the response as events, or complete when the server does not respond with a stream.
    pub(crate) async fn post_json_for_events(
        mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<StreamResponse, Error> {
        self.send("POST", path, headers, body).await?;
        let head = self.read_head().await?;
        if head.event_stream {
            let Head { headers, framing, .. } = head;
            return Ok(StreamResponse::Events(Events {
                headers,
                connection: self,
                framing,
                unread: Vec::new(),
            }));
        }
        let body = self.read_body(head.framing).await?;
        Ok(StreamResponse::Response(Response { status: head.status, headers: head.headers, body }))
    }

    /// Posts, reads at most `after_bytes` of the response and resets the connection, like a client that disappears
    /// in the middle of a response.
    pub(crate) async fn post_json_and_reset(
        mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        after_bytes: usize,
    ) -> Result<(), Error> {
        self.send("POST", path, headers, body).await?;
        let mut left = after_bytes;
        while left > 0 {
            let read = self.stream.fill_buf().await?.len().min(left);
            if read == 0 {
                break;
            }
            self.stream.consume(read);
            left -= read;
        }
        Ok(self.stream.get_ref().set_zero_linger()?)
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(), Error> {
        let json = [("Content-Type", "application/json")];
        let typed = if body.is_empty() { &[][..] } else { &json };
        self.write(method, path, &[typed, headers].concat(), body).await
    }

    async fn write(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(), Error> {
        let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address).into_bytes();
        if !body.is_empty() {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        Ok(self.stream.get_mut().write_all(&bytes).await?)
    }

    async fn response(&mut self) -> Result<Response, Error> {
        let head = self.read_head().await?;
        let body = self.read_body(head.framing).await?;
        Ok(Response { status: head.status, headers: head.headers, body })
    }

    async fn read_head(&mut self) -> Result<Head, Error> {
        let status = self.read_line().await?;
        let mut head = Head::open(&status)?;
        loop {
            let line = self.read_line().await?;
            if line.is_empty() {
                return Ok(head);
            }
            head.add(&line)?;
        }
    }

    async fn read_body(&mut self, mut framing: Framing) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(bytes) = self.read_body_bytes(&mut framing).await? {
            body.extend_from_slice(&bytes);
            if body.len() as u64 > MAX_BODY_BYTES {
                return Err(malformed("the body is too long"));
            }
        }
        Ok(body)
    }

    /// The next available bytes of a body, or `None` at its end.
    async fn read_body_bytes(&mut self, framing: &mut Framing) -> Result<Option<Vec<u8>>, Error> {
        match *framing {
            Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                let bytes = self.read_exactly(left).await?;
                *framing = Framing::Length(0);
                Ok(Some(bytes))
            }
            Framing::Chunked => self.read_chunk(framing).await,
            Framing::UntilClose => {
                let bytes = self.stream.fill_buf().await?.to_vec();
                self.stream.consume(bytes.len());
                Ok(if bytes.is_empty() { None } else { Some(bytes) })
            }
        }
    }

    async fn read_chunk(&mut self, framing: &mut Framing) -> Result<Option<Vec<u8>>, Error> {
        let line = self.read_line().await?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| malformed("a chunk has no size"))?;
        if size == 0 {
            while !self.read_line().await?.is_empty() {}
            *framing = Framing::Length(0);
            return Ok(None);
        }
        let bytes = self.read_exactly(size).await?;
        if !self.read_line().await?.is_empty() {
            return Err(malformed("a chunk is longer than its size"));
        }
        Ok(Some(bytes))
    }

    async fn read_exactly(&mut self, length: u64) -> Result<Vec<u8>, Error> {
        if length > MAX_BODY_BYTES {
            return Err(malformed("the declared body length is too large"));
        }
        let mut bytes = vec![0; usize::try_from(length).expect("bounded just above")];
        self.stream.read_exact(&mut bytes).await?;
        Ok(bytes)
    }

    async fn read_line(&mut self) -> Result<String, Error> {
        let mut bytes = Vec::new();
        (&mut self.stream).take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes).await?;
        if bytes.pop() != Some(b'\n') {
            return Err(if bytes.len() as u64 >= MAX_LINE_BYTES - 1 {
                malformed("a line is too long")
            } else {
                Error::Cut(io::ErrorKind::UnexpectedEof.into())
            });
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        String::from_utf8(bytes).map_err(|_| malformed("a line is not UTF-8"))
    }
}

impl Headers {
    /// The value of a header by case-insensitive name; the first one, if it occurs twice.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter().filter_map(|line| line.split_once(':'));
        pairs.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

impl Events {
    /// The next event, or `None` when the server has ended the stream properly.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            while let Some(block) = self.take_block() {
                if let Some(event) = parse_event(&block)? {
                    return Ok(Some(event));
                }
            }
            match self.connection.read_body_bytes(&mut self.framing).await? {
                Some(bytes) => self.unread.extend_from_slice(&bytes),
                None => return Ok(None),
            }
            if self.unread.len() as u64 > MAX_BODY_BYTES {
                return Err(malformed("an event is too long"));
            }
        }
    }

    fn take_block(&mut self) -> Option<Vec<u8>> {
        let end = self.unread.windows(2).position(|pair| pair == b"\n\n")?;
        let rest = self.unread.split_off(end + 2);
        Some(std::mem::replace(&mut self.unread, rest))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(cause) => write!(f, "the connection was lost: {cause}"),
            Self::Malformed(what) => write!(f, "the response is not HTTP: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(cause: io::Error) -> Self {
        Self::Cut(cause)
    }
}

/// How the end of a body is determined.
#[derive(Clone, Copy)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

struct Head {
    status: u16,
    headers: Headers,
    framing: Framing,
    event_stream: bool,
}

impl Head {
    fn open(line: &str) -> Result<Self, Error> {
        let status = line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3))
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| malformed(line))?;
        let headers = Headers(Vec::new());
        Ok(Self { status, headers, framing: Framing::UntilClose, event_stream: false })
    }

    fn add(&mut self, line: &str) -> Result<(), Error> {
        let (name, value) = line.split_once(':').ok_or_else(|| malformed(line))?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                self.framing = Framing::Length(value.parse().map_err(|_| malformed(line))?);
            }
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => self.framing = Framing::Chunked,
            "content-type" => self.event_stream = value.starts_with("text/event-stream"),
            _ => {}
        }
        self.headers.0.push(line.to_owned());
        Ok(())
    }
}

/// A block without data (a comment, a `retry:`) is not an event. Lines must end with LF: the server under test
/// writes no CR, and one that did would be reported as data that is not JSON.
fn parse_event(block: &[u8]) -> Result<Option<Event>, Error> {
    let text = std::str::from_utf8(block).map_err(|_| malformed("an event is not UTF-8"))?;
    let mut id = None;
    let mut data: Option<String> = None;
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (field, &mut data) {
            ("id", _) => id = Some(value.to_owned()),
            ("data", Some(data)) => {
                data.push('\n');
                data.push_str(value);
            }
            ("data", none) => *none = Some(value.to_owned()),
            _ => {}
        }
    }
    Ok(data.map(|data| Event { id, data }))
}

fn malformed(what: &str) -> Error {
    Error::Malformed(what.to_owned())
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
        let connection = Connection::open(address).await.unwrap();
        let StreamResponse::Events(mut events) =
            connection.post_json_for_events("/", &[], b"{}").await.unwrap()
        else {
            panic!("not a stream")
        };
        let mut seen = Vec::new();
        loop {
            match events.next().await {
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
