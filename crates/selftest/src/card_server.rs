//! An HTTP server that has one card and nothing else, for checks of the program's client.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{CheckError, mismatch};

/// The request lines that a server received, such as `GET /.well-known/agent-card.json`.
type RequestLog = Arc<Mutex<Vec<String>>>;

/// Serves a card on a free loopback port until this value is dropped.
pub(crate) struct CardServer {
    host: String,
    request_log: RequestLog,
    _serving: JoinSet<()>,
}

impl CardServer {
    /// `path` is the path of the card; every other request is answered with 404.
    pub(crate) async fn start(path: &'static str, card: String) -> Result<Self, CheckError> {
        let failed = |error: std::io::Error| mismatch("a free port", error);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let host = listener.local_addr().map_err(failed)?.to_string();
        let request_log = RequestLog::default();
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, path, card, Arc::clone(&request_log)));
        Ok(Self { host, request_log, _serving: serving })
    }

    /// The server's origin.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.host)
    }

    /// Method and path of every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.request_log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(listener: TcpListener, path: &'static str, card: String, request_log: RequestLog) {
    let card: Arc<str> = card.into();
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (card, request_log) = (Arc::clone(&card), Arc::clone(&request_log));
        connections.spawn(async move {
            // The client reports a connection that breaks.
            let _ = respond(stream, path, &card, &request_log).await;
        });
    }
}

/// Answers one request, which has no body, and closes the connection.
async fn respond(stream: TcpStream, path: &str, card: &str, request_log: &RequestLog) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    // A line of two bytes is the empty line at the end of the head.
    while stream.read_line(&mut head).await? > 2 {}
    let line: Vec<&str> = head.split(' ').take(2).collect();
    let line = line.join(" ");
    let (status, body) = if line == format!("GET {path}") { ("200 OK", card) } else { ("404 Not Found", "") };
    request_log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}
