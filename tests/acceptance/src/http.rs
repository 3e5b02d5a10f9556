//! Requests of the checks, and responses with the assertions that checks make about them.

use std::{fmt, io, net::SocketAddr, ops::Deref, time::Duration};

use serde_json::Value;
use testkit::http1::{self, Connection, Head};
use tokio::net::{TcpSocket, lookup_host};

use super::{
    CheckError,
    json::{self, ValueChecks as _},
    mismatch,
};

/// The time limit of one connect, read or write.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Request headers in addition to `host`, `connection` and `content-length`.
pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

/// The address of a server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Host and port.
    pub(crate) host: String,
}

impl Server {
    pub(crate) fn at(host: impl Into<String>) -> Self {
        Self { host: host.into() }
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
        let mut connection = connect(&self.host, None).await?;
        self.write(&mut connection, verb, path, headers, body).await?;
        Ok(Response::new(connection.response().await.map_err(broken)?))
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
        let mut connection = connect(&self.host, buffer_bytes).await?;
        let headers: Vec<_> = JSON.iter().chain(headers).copied().collect();
        self.write(&mut connection, "POST", path, &headers, body).await?;
        let head = connection.head().await.map_err(broken)?;
        if head.status != 200 || !head.is_event_stream() {
            let Head { status, headers } = head;
            let body = connection.body().await.map_err(broken)?;
            let response = Response::new(http1::Response { status, headers, body });
            return Err(mismatch("200 with content-type: text/event-stream", response));
        }
        Ok(Events { connection })
    }

    async fn write(
        &self,
        connection: &mut Connection,
        verb: &str,
        path: &str,
        headers: Headers<'_>,
        body: &str,
    ) -> Result<(), CheckError> {
        let mut all = vec![("connection", "close")];
        if !headers.iter().any(|header| header.0 == "host") {
            all.push(("host", &self.host));
        }
        if verb != "GET" && body.is_empty() {
            all.push(("content-length", "0"));
        }
        all.extend(headers);
        connection.send(verb, path, &all, body.as_bytes()).await.map_err(broken)
    }
}

const JSON: Headers<'static> = &[("content-type", "application/json")];

/// A complete response; dereferences to its body as JSON, `Value::Null` where the body is not JSON.
#[derive(Debug)]
pub(crate) struct Response {
    http: http1::Response,
    json: Value,
}

impl Response {
    fn new(http: http1::Response) -> Self {
        Self { json: json::parse(&http.text()).unwrap_or(Value::Null), http }
    }

    pub(crate) fn status(&self) -> u16 {
        self.http.status
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.http.headers.get(name)
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.http.body
    }

    /// The text of the JSON value at a path, as the server wrote it.
    pub(crate) fn json_text(&self, path: &str) -> Result<&str, CheckError> {
        let body = std::str::from_utf8(self.body()).map_err(|error| mismatch("UTF-8", error))?;
        json::text_at(body, path)
    }

    pub(crate) fn has_status(&self, status: u16) -> Result<(), CheckError> {
        if self.status() == status { Ok(()) } else { Err(mismatch(format!("status {status}"), self)) }
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
        write!(out, "{} {}", self.status(), self.http.text())
    }
}

/// A response that is a stream of server-sent events.
pub(crate) struct Events {
    connection: Connection,
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

impl Events {
    /// The next event; `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, CheckError> {
        let Some(event) = self.connection.event().await.map_err(broken)? else { return Ok(None) };
        Ok(Some(Event { id: event.id, data: json::parse(&event.data)? }))
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

#[expect(clippy::disallowed_methods, reason = "checks a server with its own connections")]
async fn connect(host: &str, buffer_bytes: Option<u32>) -> Result<Connection, CheckError> {
    let connecting = async {
        let address: SocketAddr = lookup_host(host).await?.next().ok_or(io::ErrorKind::NotFound)?;
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if let Some(bytes) = buffer_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.connect(address).await
    };
    let what = || format!("a connection to {host}");
    let connected = tokio::time::timeout(TIMEOUT, connecting).await.map_err(|_| timed_out(what()))?;
    let connection = connected.map_err(|error| mismatch(what(), error))?;
    Ok(Connection::over(connection).map_err(broken)?.with_limit(TIMEOUT))
}

/// A response that did not arrive, or not as HTTP/1.1.
fn broken(error: http1::Error) -> CheckError {
    match error {
        http1::Error::TimedOut(_) => timed_out("more response bytes"),
        http1::Error::Cut(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            mismatch("more response bytes", "the end of the connection")
        }
        http1::Error::Cut(error) => mismatch("more response bytes", error),
        error => mismatch("an HTTP/1.1 response", error),
    }
}

fn timed_out(what: impl fmt::Display) -> CheckError {
    mismatch(what, format!("a timeout after {} seconds", TIMEOUT.as_secs()))
}
