//! The server under test: requests to it, and a server that is started for the check.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{http1::Connection, process};
use tokio::net::{TcpStream, lookup_host};

/// The time limit of one connect, read or write.
const LIMIT: Duration = Duration::from_secs(30);

/// The address of a server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Host and port.
    host: String,
}

/// What a server answers to a call.
#[derive(Debug)]
pub(crate) enum Answer {
    Result(Value),
    /// The code and the text of an error, and the HTTP status.
    Error {
        code: i64,
        status: u16,
        text: String,
    },
}

impl Answer {
    /// What the server has answered, for the report.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Result(result) => result.to_string(),
            Self::Error { text, .. } => text.clone(),
        }
    }
}

/// A response that is a stream of events.
pub(crate) struct Events {
    connection: Connection,
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: Option<u64>,
    /// The result in it.
    pub(crate) result: Value,
}

impl Server {
    /// The server at an `http` origin; `None` if `url` is anything else. The default port is 80.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?.trim_end_matches('/');
        let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let host = if has_port { rest.to_owned() } else { format!("{rest}:80") };
        (!rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' '])).then_some(Self { host })
    }

    /// The JSON document at a path; `None` where there is none.
    pub(crate) async fn document(&self, path: &str, version: Option<&str>) -> Result<Option<Value>> {
        let mut connection = self.connect().await?;
        let headers = self.headers(version);
        connection.send("GET", path, &headers, b"").await?;
        let response = connection.response().await?;
        match response.status {
            200 => Ok(Some(response.json().with_context(|| format!("{path} is not JSON"))?)),
            404 | 405 => Ok(None),
            status => bail!("HTTP status {status} for {path}"),
        }
    }

    /// Calls a method of JSON-RPC.
    pub(crate) async fn call(&self, path: &str, version: Option<&str>, call: Call) -> Result<Answer> {
        let mut connection = self.connect().await?;
        connection.send("POST", path, &self.headers(version), &call.body()).await?;
        let response = connection.response().await?;
        answer(response.status, &response.body)
    }

    /// Calls a method that responds with events; an [`Answer`] if the server sends none.
    pub(crate) async fn stream(
        &self,
        path: &str,
        version: Option<&str>,
        call: Call,
        after: Option<u64>,
    ) -> Result<std::result::Result<Events, Answer>> {
        let mut connection = self.connect().await?;
        let after = after.map(|id| id.to_string());
        let mut headers = self.headers(version);
        headers.extend(after.as_deref().map(|id| ("last-event-id", id)));
        connection.send("POST", path, &headers, &call.body()).await?;
        let head = connection.head().await?;
        if head.status == 200 && head.is_event_stream() {
            return Ok(Ok(Events { connection }));
        }
        Ok(Err(answer(head.status, &connection.body().await?)?))
    }

    fn headers<'a>(&'a self, version: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
        let own =
            [("host", self.host.as_str()), ("connection", "close"), ("content-type", "application/json")];
        own.into_iter().chain(version.map(|version| ("a2a-version", version))).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "checks a server with its own connections")]
    async fn connect(&self) -> Result<Connection> {
        let connecting = async {
            let address: SocketAddr = lookup_host(&self.host).await?.next().ok_or(io::ErrorKind::NotFound)?;
            TcpStream::connect(address).await
        };
        let stream = tokio::time::timeout(LIMIT, connecting).await.context("the server does not answer")?;
        let stream = stream.with_context(|| format!("cannot connect to {}", self.host))?;
        Ok(Connection::over(stream)?.with_limit(LIMIT))
    }
}

/// A method with its parameters.
pub(crate) struct Call {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
}

impl Call {
    fn body(&self) -> Vec<u8> {
        let Self { method, params } = self;
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string().into_bytes()
    }
}

fn answer(status: u16, body: &[u8]) -> Result<Answer> {
    let text = || String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    let Ok(mut response) = serde_json::from_slice::<Value>(body) else {
        return Ok(Answer::Error { code: 0, status, text: format!("HTTP status {status}: {}", text()) });
    };
    if let Some(code) = response["error"]["code"].as_i64() {
        let message = response["error"]["message"].as_str().unwrap_or_default();
        let text = format!("error {code}: {message} (HTTP status {status})");
        return Ok(Answer::Error { code, status, text });
    }
    if response["jsonrpc"] != "2.0" || response["id"] != 1 || response.get("result").is_none() {
        return Err(anyhow!("a response that is not JSON-RPC: {}", text()));
    }
    Ok(Answer::Result(response["result"].take()))
}

impl Events {
    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>> {
        let Some(event) = self.connection.event().await? else { return Ok(None) };
        match answer(200, event.data.as_bytes())? {
            Answer::Result(result) => Ok(Some(Event { id: event.id.and_then(|id| id.parse().ok()), result })),
            Answer::Error { text, .. } => bail!("the stream ends with {text}"),
        }
    }
}

/// A server that is started for the check; it ends when this value is dropped.
pub(crate) struct OwnServer {
    pub(crate) server: Server,
    _process: process::Server,
    _folder: TempDir,
}

impl OwnServer {
    /// Starts the demo agents with a store of their own, in an empty directory.
    pub(crate) async fn start(executable: PathBuf) -> Result<Self> {
        let folder = TempDir::with_prefix("a2ad-selftest-")?;
        let mut command = process::command(executable);
        command.current_dir(folder.path()).args([
            "serve",
            "--listen",
            process::ANY_PORT,
            "--store",
            "a2ad.db",
        ]);
        let process = process::Server::start_command_within(LIMIT, command).await?;
        Ok(Self { server: Server { host: process.address.to_string() }, _process: process, _folder: folder })
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
}
