//! HTTP/1.1 servers on free loopback ports inside this process, for what the server under test and its client call.

use std::{collections::HashMap, io, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{CheckError, mismatch};

/// Serves until this value is dropped.
pub(crate) struct LoopbackServer {
    /// Host and port.
    pub(crate) host: String,
    _serving: JoinSet<()>,
}

/// The only request of a connection, and where the response goes.
pub(crate) struct Request {
    /// Method and path, such as `GET /.well-known/agent-card.json`.
    pub(crate) line: String,
    /// By their names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    pub(crate) stream: BufReader<TcpStream>,
}

impl LoopbackServer {
    /// `respond` writes the response to a request. A connection that breaks is for its client to report.
    pub(crate) async fn start<R>(
        respond: impl Fn(Request) -> R + Send + Sync + 'static,
    ) -> Result<Self, CheckError>
    where
        R: Future<Output = io::Result<()>> + Send + 'static,
    {
        let failed = |error: io::Error| mismatch("a free port", error);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let host = listener.local_addr().map_err(failed)?.to_string();
        let mut serving = JoinSet::new();
        let respond = Arc::new(respond);
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let respond = Arc::clone(&respond);
                connections.spawn(async move {
                    if let Ok(request) = read(stream).await {
                        let _ = respond(request).await;
                    }
                });
            }
        });
        Ok(Self { host, _serving: serving })
    }
}

impl Request {
    /// Responds with a JSON text.
    pub(crate) async fn respond(mut self, body: &str) -> io::Result<()> {
        let length = body.len();
        let response = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        );
        self.stream.write_all(response.as_bytes()).await?;
        self.stream.shutdown().await
    }

    /// Responds with a status and perhaps a header; `more` ends with a line break, unless it is empty.
    pub(crate) async fn respond_with(mut self, status: u16, more: &str, body: &str) -> io::Result<()> {
        let length = body.len();
        let response = format!(
            "HTTP/1.1 {status} -\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        self.stream.write_all(response.as_bytes()).await?;
        self.stream.shutdown().await
    }

    /// Responds that there is nothing at the path.
    pub(crate) async fn respond_not_found(mut self) -> io::Result<()> {
        let response = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        self.stream.write_all(response).await?;
        self.stream.shutdown().await
    }
}

/// Reads a request to the end of its body.
async fn read(stream: TcpStream) -> io::Result<Request> {
    const MAX_HEAD_BYTES: u64 = 64 << 10;
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    // A line of two bytes is the empty line at the end of the head.
    while (&mut stream).take(MAX_HEAD_BYTES).read_line(&mut head).await? > 2 {}
    let line: Vec<&str> = head.split(' ').take(2).collect();
    let line = line.join(" ");
    let header = |text: &str| {
        let (name, value) = text.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: HashMap<_, _> = head.lines().skip(1).filter_map(header).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
    let mut body = Vec::new();
    (&mut stream).take(length).read_to_end(&mut body).await?;
    Ok(Request { line, headers, body, stream })
}
