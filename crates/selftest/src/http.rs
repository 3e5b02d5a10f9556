//! A minimal HTTP/1.1 client with server-sent events, written without an HTTP library: the checks control every byte
//! of a request and see every header and byte of a response.

use std::{fmt, io, ops::Deref, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream, lookup_host},
};

use serde_json::Value;

use super::{
    CheckError,
    json::{self, ValueChecks as _},
    mismatch,
    started::Started,
};

/// The time limit of one connect, read or write.
const TIMEOUT: Duration = Duration::from_secs(8);

/// The maximum size of a response body or chunk.
const MAX_BYTES: usize = 64 << 20;

/// Request headers in addition to `host`, `connection` and `content-length`.
pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

/// The address of a server, with a record of the tasks started there.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Host and port.
    pub(crate) host: String,
    pub(crate) started: Started,
}

impl Server {
    pub(crate) fn at(host: impl Into<String>) -> Self {
        let host = host.into();
        Self { started: Started::at(&host), host }
    }

    /// The server at an `http` origin; `None` if `url` is anything else. The default port is 80.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?.trim_end_matches('/');
        let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let host = if has_port { rest.to_owned() } else { format!("{rest}:80") };
        (!rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' '])).then(|| Self::at(host))
    }

    pub(crate) async fn get(&self, path: &str, headers: Headers<'_>) -> Result<Response, CheckError> {
        self.send_request("GET", path, headers, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Result<Response, CheckError> {
        self.send_request("POST", path, JSON, body).await
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn send_request(
        &self,
        verb: &str,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Result<Response, CheckError> {
        let mut connection = Connection::connect(&self.host, None).await?;
        self.started.note_request(path, body);
        connection.send(&self.host, verb, path, headers, body).await?;
        let response = connection.response().await?;
        self.started.note_response(path, &response.json);
        Ok(response)
    }

    /// Sends a request and reads the response head, which must announce an event stream.
    pub(crate) async fn stream(
        &self,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Result<Events, CheckError> {
        self.stream_into(None, path, headers, body).await
    }

    /// Like [`Self::stream`], with a limited socket receive buffer, so that a client that does not read soon
    /// blocks the server's writes.
    pub(crate) async fn stream_into(
        &self,
        buffer_bytes: Option<u32>,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Result<Events, CheckError> {
        let mut connection = Connection::connect(&self.host, buffer_bytes).await?;
        let headers: Vec<_> = JSON.iter().chain(headers).copied().collect();
        self.started.note_request(path, body);
        connection.send(&self.host, "POST", path, &headers, body).await?;
        let head = connection.head().await?;
        let is_stream = head.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        if head.status != 200 || !is_stream {
            return Err(mismatch(
                "200 with content-type: text/event-stream",
                connection.rest_of(head).await?,
            ));
        }
        Ok(Events { connection, partial: Vec::new(), path: path.to_owned(), started: self.started.clone() })
    }
}

const JSON: Headers<'static> = &[("content-type", "application/json")];

/// A complete response; dereferences to its body as JSON, `Value::Null` where the body is not JSON.
#[derive(Debug)]
pub(crate) struct Response {
    head: Head,
    json: Value,
    body: Vec<u8>,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The text of the JSON value at a path, as the server wrote it.
    pub(crate) fn json_text(&self, path: &str) -> Result<&str, CheckError> {
        let body = std::str::from_utf8(&self.body).map_err(|error| mismatch("UTF-8", error))?;
        json::text_at(body, path)
    }

    pub(crate) fn has_status(&self, status: u16) -> Result<(), CheckError> {
        if self.head.status == status { Ok(()) } else { Err(mismatch(format!("status {status}"), self)) }
    }

    /// Checks that the body is a JSON-RPC error with this code.
    pub(crate) fn has_error_code(&self, code: i64) -> Result<&Self, CheckError> {
        match self.json.is("error.code", code) {
            Ok(()) => Ok(self),
            Err(_) => Err(mismatch(format!("error {code}"), self)),
        }
    }

    /// Checks that the result is a task in this state.
    pub(crate) fn has_state(&self, state: &str) -> Result<&Self, CheckError> {
        self.json.is("result.status.state", state)?;
        Ok(self)
    }
}

impl Deref for Response {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.json
    }
}

impl fmt::Display for Response {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.head.status, String::from_utf8_lossy(&self.body))
    }
}

/// A response that is a stream of server-sent events.
pub(crate) struct Events {
    connection: Connection,
    /// Bytes of an incomplete event.
    partial: Vec<u8>,
    /// The path of the request.
    path: String,
    started: Started,
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

impl Events {
    /// The next event; `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, CheckError> {
        loop {
            if let Some(end) = self.partial.windows(2).position(|pair| pair == b"\n\n") {
                let rest = self.partial.split_off(end + 2);
                let text = std::mem::replace(&mut self.partial, rest);
                if let Some(event) = event(&String::from_utf8_lossy(&text))? {
                    self.started.note_response(&self.path, &event.data);
                    return Ok(Some(event));
                }
                continue;
            }
            match self.connection.chunk().await? {
                Some(chunk) => self.partial.extend(chunk),
                None if self.partial.is_empty() => return Ok(None),
                None => {
                    let got = String::from_utf8_lossy(&self.partial).into_owned();
                    return Err(mismatch("a complete event before the end of the body", got));
                }
            }
        }
    }

    /// Every event up to the end of the body.
    pub(crate) async fn all(mut self) -> Result<Vec<Event>, CheckError> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        Ok(events)
    }
}

/// Parses a block of lines; `None` for a block of comments or `retry` fields without data.
fn event(block: &str) -> Result<Option<Event>, CheckError> {
    let field = |name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim_start))
    };
    let Some(data) = field("data") else { return Ok(None) };
    Ok(Some(Event { id: field("id").map(str::to_owned), data: json::parse(data)? }))
}

#[derive(Debug)]
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str())
    }
}

/// One connection.
struct Connection {
    stream: TcpStream,
    /// Bytes that were read and not yet consumed.
    buffered: Vec<u8>,
}

impl Connection {
    async fn connect(host: &str, buffer_bytes: Option<u32>) -> Result<Self, CheckError> {
        let connecting = async {
            let address = lookup_host(host).await?.next().ok_or(io::ErrorKind::NotFound)?;
            let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            if let Some(bytes) = buffer_bytes {
                socket.set_recv_buffer_size(bytes)?;
            }
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let stream = with_timeout(format!("a connection to {host}"), connecting).await?;
        Ok(Self { stream, buffered: Vec::new() })
    }

    async fn send(
        &mut self,
        host: &str,
        verb: &str,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Result<(), CheckError> {
        let mut head = format!("{verb} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|header| header.0 == "host") {
            head += &format!("host: {host}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if verb != "GET" {
            head += &format!("content-length: {}\r\n", body.len());
        }
        let bytes = format!("{head}\r\n{body}");
        with_timeout("a request to be sent", self.stream.write_all(bytes.as_bytes())).await
    }

    async fn response(&mut self) -> Result<Response, CheckError> {
        let head = self.head().await?;
        self.rest_of(head).await
    }

    async fn rest_of(&mut self, head: Head) -> Result<Response, CheckError> {
        let mut body = Vec::new();
        if head.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            while let Some(chunk) = self.chunk().await? {
                body.extend(chunk);
            }
        } else if let Some(length) = head.header("content-length") {
            let length = length.parse().map_err(|_| mismatch("a content-length", length))?;
            // A 304 response has no body; its content-length is that of the full response.
            body = if head.status == 304 { Vec::new() } else { self.take(length).await? };
        }
        let json = json::parse(&String::from_utf8_lossy(&body)).unwrap_or(Value::Null);
        Ok(Response { head, json, body })
    }

    async fn head(&mut self) -> Result<Head, CheckError> {
        let line = self.line().await?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| mismatch("an HTTP/1.1 response", &line))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        Ok(Head { status, headers })
    }

    /// One chunk of a chunked body; `None` at its end.
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, CheckError> {
        let line = self.line().await?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| mismatch("a chunk size", &line))?;
        let chunk = self.take(size).await?;
        self.line().await?;
        Ok((size > 0).then_some(chunk))
    }

    async fn line(&mut self) -> Result<String, CheckError> {
        loop {
            if let Some(end) = self.buffered.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.take(end + 2).await?;
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.fill().await?;
        }
    }

    async fn take(&mut self, length: usize) -> Result<Vec<u8>, CheckError> {
        if length > MAX_BYTES {
            return Err(mismatch(format!("at most {MAX_BYTES} bytes"), length));
        }
        while self.buffered.len() < length {
            self.fill().await?;
        }
        let rest = self.buffered.split_off(length);
        Ok(std::mem::replace(&mut self.buffered, rest))
    }

    async fn fill(&mut self) -> Result<(), CheckError> {
        self.buffered.reserve(64 << 10);
        match with_timeout("more response bytes", self.stream.read_buf(&mut self.buffered)).await? {
            0 => Err(mismatch("more response bytes", "the end of the connection")),
            _ => Ok(()),
        }
    }
}

/// Applies [`TIMEOUT`] to an I/O operation; `what` names the expectation in the error.
async fn with_timeout<T>(
    what: impl fmt::Display,
    future: impl Future<Output = io::Result<T>>,
) -> Result<T, CheckError> {
    match tokio::time::timeout(TIMEOUT, future).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(mismatch(what, error)),
        Err(_) => Err(mismatch(what, format!("a timeout after {} seconds", TIMEOUT.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_origins_are_accepted() {
        let host = |url: &str| Server::of(url).map(|server| server.host);
        assert_eq!(host("http://127.0.0.1:4242/").as_deref(), Some("127.0.0.1:4242"));
        assert_eq!(host("http://[::1]:1").as_deref(), Some("[::1]:1"));
        assert_eq!(host("http://a.example").as_deref(), Some("a.example:80"));
        for url in ["https://a.example", "a.example:80", "http://", "http://a/b", "http://u@a"] {
            assert_eq!(host(url), None, "{url}");
        }
    }

    #[test]
    fn comments_and_retry_fields_are_not_events() {
        assert!(event(":\n\n").unwrap().is_none() && event("retry: 1000\n\n").unwrap().is_none());
        let event = event("id: 7\ndata: {\"a\":1}\n\n").unwrap().unwrap();
        assert_eq!(event.id.as_deref(), Some("7"));
        event.data.is("a", 1).unwrap();
    }
}
