//! HTTP/1.1 and server-sent events by hand: what is sent is what stands here, and nothing that comes back is hidden.

use std::{fmt, io, ops::Deref, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream, lookup_host},
};

use super::{Trouble, json::Json, started::Started, wrong};

/// How long the next bytes may take.
const PATIENCE: Duration = Duration::from_secs(8);

/// The largest answer that is read.
const MAX_BYTES: usize = 64 << 20;

/// Headers of a request beside the usual ones.
pub(super) type Headers<'a> = &'a [(&'a str, &'a str)];

/// A server to be asked.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// Host and port.
    pub(super) host: String,
    /// The tasks that were started there.
    pub(super) started: Started,
}

impl Server {
    /// The server at a host and port.
    pub(super) fn at(host: impl Into<String>) -> Self {
        let host = host.into();
        Self { started: Started::at(&host), host }
    }

    /// The server at a URL, which is an origin.
    pub(super) fn of(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?.trim_end_matches('/');
        let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let host = if has_port { rest.to_owned() } else { format!("{rest}:80") };
        (!rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' '])).then(|| Self::at(host))
    }

    pub(super) async fn get(&self, path: &str, headers: Headers<'_>) -> Result<Answer, Trouble> {
        self.ask("GET", path, headers, "").await
    }

    pub(super) async fn post(&self, path: &str, body: &str) -> Result<Answer, Trouble> {
        self.ask("POST", path, JSON, body).await
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn ask(
        &self,
        verb: &str,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Result<Answer, Trouble> {
        let mut wire = Wire::connect(&self.host, None).await?;
        self.started.note_request(path, body);
        wire.send(&self.host, verb, path, headers, body).await?;
        let answer = wire.answer().await?;
        self.started.note_answer(path, &answer.json);
        Ok(answer)
    }

    /// Sends a request that is answered with events, and reads the head of the answer.
    pub(super) async fn stream(
        &self,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Result<Events, Trouble> {
        self.stream_into(None, path, headers, body).await
    }

    /// The same by a client whose system takes few bytes before the client reads them.
    pub(super) async fn stream_into(
        &self,
        buffer_bytes: Option<u32>,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Result<Events, Trouble> {
        let mut wire = Wire::connect(&self.host, buffer_bytes).await?;
        let headers: Vec<_> = JSON.iter().chain(headers).copied().collect();
        self.started.note_request(path, body);
        wire.send(&self.host, "POST", path, &headers, body).await?;
        let head = wire.head().await?;
        let is_stream = head.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        if head.status != 200 || !is_stream {
            return Err(wrong("200 with content-type: text/event-stream", wire.rest_of(head).await?));
        }
        Ok(Events { wire, partial: Vec::new(), path: path.to_owned(), started: self.started.clone() })
    }
}

const JSON: Headers<'static> = &[("content-type", "application/json")];

/// A whole answer; its body as JSON is what it is used as.
#[derive(Debug)]
pub(super) struct Answer {
    head: Head,
    json: Json,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn status(&self) -> u16 {
        self.head.status
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The status is this.
    pub(super) fn has_status(&self, status: u16) -> Result<(), Trouble> {
        if self.head.status == status { Ok(()) } else { Err(wrong(format!("status {status}"), self)) }
    }

    /// It is a JSON-RPC error of this code.
    pub(super) fn fails(&self, code: i64) -> Result<&Self, Trouble> {
        match self.json.is("error.code", code) {
            Ok(()) => Ok(self),
            Err(_) => Err(wrong(format!("error {code}"), self)),
        }
    }

    /// It is a task in this state.
    pub(super) fn state(&self, state: &str) -> Result<&Self, Trouble> {
        self.json.is("result.status.state", state)?;
        Ok(self)
    }
}

impl Deref for Answer {
    type Target = Json;

    fn deref(&self) -> &Json {
        &self.json
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.head.status, String::from_utf8_lossy(&self.body))
    }
}

/// An answer that comes event by event.
pub(super) struct Events {
    wire: Wire,
    /// Bytes of an event that is not whole yet.
    partial: Vec<u8>,
    /// Where it was asked for.
    path: String,
    started: Started,
}

/// One event.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    pub(super) data: Json,
}

impl Events {
    /// The next event; `None` at the end of the body.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Trouble> {
        loop {
            if let Some(end) = self.partial.windows(2).position(|pair| pair == b"\n\n") {
                let rest = self.partial.split_off(end + 2);
                let text = std::mem::replace(&mut self.partial, rest);
                if let Some(event) = event(&String::from_utf8_lossy(&text))? {
                    self.started.note_answer(&self.path, &event.data);
                    return Ok(Some(event));
                }
                continue;
            }
            match self.wire.chunk().await? {
                Some(chunk) => self.partial.extend(chunk),
                None if self.partial.is_empty() => return Ok(None),
                None => {
                    let got = String::from_utf8_lossy(&self.partial).into_owned();
                    return Err(wrong("an event that is whole before the body ends", got));
                }
            }
        }
    }

    /// Every event up to the end of the body.
    pub(super) async fn all(mut self) -> Result<Vec<Event>, Trouble> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        Ok(events)
    }
}

/// What a block of lines says; comments and hints alone are no event.
fn event(block: &str) -> Result<Option<Event>, Trouble> {
    let field = |name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim_start))
    };
    let Some(data) = field("data") else { return Ok(None) };
    Ok(Some(Event { id: field("id").map(str::to_owned), data: Json::parse(data)? }))
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
struct Wire {
    stream: TcpStream,
    /// Read and not yet looked at.
    ahead: Vec<u8>,
}

impl Wire {
    async fn connect(host: &str, buffer_bytes: Option<u32>) -> Result<Self, Trouble> {
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
        let stream = within(format!("a connection to {host}"), connecting).await?;
        Ok(Self { stream, ahead: Vec::new() })
    }

    async fn send(
        &mut self,
        host: &str,
        verb: &str,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Result<(), Trouble> {
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
        within("a request to be taken", self.stream.write_all(bytes.as_bytes())).await
    }

    async fn answer(&mut self) -> Result<Answer, Trouble> {
        let head = self.head().await?;
        self.rest_of(head).await
    }

    async fn rest_of(&mut self, head: Head) -> Result<Answer, Trouble> {
        let mut body = Vec::new();
        if head.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            while let Some(chunk) = self.chunk().await? {
                body.extend(chunk);
            }
        } else if let Some(length) = head.header("content-length") {
            let length = length.parse().map_err(|_| wrong("a content-length", length))?;
            // Nothing follows where it is only said how long the answer would have been.
            body = if head.status == 304 { Vec::new() } else { self.take(length).await? };
        }
        let json = Json::parse(&String::from_utf8_lossy(&body)).unwrap_or(Json::Null);
        Ok(Answer { head, json, body })
    }

    async fn head(&mut self) -> Result<Head, Trouble> {
        let line = self.line().await?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| wrong("an answer in HTTP/1.1", &line))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        Ok(Head { status, headers })
    }

    /// One chunk of a chunked body; `None` at its end.
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        let line = self.line().await?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| wrong("the size of a chunk", &line))?;
        let chunk = self.take(size).await?;
        self.line().await?;
        Ok((size > 0).then_some(chunk))
    }

    async fn line(&mut self) -> Result<String, Trouble> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.take(end + 2).await?;
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.fill().await?;
        }
    }

    async fn take(&mut self, length: usize) -> Result<Vec<u8>, Trouble> {
        if length > MAX_BYTES {
            return Err(wrong(format!("at most {MAX_BYTES} bytes"), length));
        }
        while self.ahead.len() < length {
            self.fill().await?;
        }
        let rest = self.ahead.split_off(length);
        Ok(std::mem::replace(&mut self.ahead, rest))
    }

    async fn fill(&mut self) -> Result<(), Trouble> {
        self.ahead.reserve(64 << 10);
        match within("more of the answer", self.stream.read_buf(&mut self.ahead)).await? {
            0 => Err(wrong("more of the answer", "the end of the connection")),
            _ => Ok(()),
        }
    }
}

/// Waits, but not for ever.
async fn within<T>(
    what: impl fmt::Display,
    future: impl Future<Output = io::Result<T>>,
) -> Result<T, Trouble> {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(wrong(what, error)),
        Err(_) => Err(wrong(what, format!("silence for {} seconds", PATIENCE.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_origin() {
        let host = |url: &str| Server::of(url).map(|server| server.host);
        assert_eq!(host("http://127.0.0.1:4242/").as_deref(), Some("127.0.0.1:4242"));
        assert_eq!(host("http://[::1]:1").as_deref(), Some("[::1]:1"));
        assert_eq!(host("http://a.example").as_deref(), Some("a.example:80"));
        for url in ["https://a.example", "a.example:80", "http://", "http://a/b", "http://u@a"] {
            assert_eq!(host(url), None, "{url}");
        }
    }

    #[test]
    fn comments_and_hints_are_no_events() {
        assert!(event(":\n\n").unwrap().is_none() && event("retry: 1000\n\n").unwrap().is_none());
        let event = event("id: 7\ndata: {\"a\":1}\n\n").unwrap().unwrap();
        assert_eq!(event.id.as_deref(), Some("7"));
        event.data.is("a", 1).unwrap();
    }
}
