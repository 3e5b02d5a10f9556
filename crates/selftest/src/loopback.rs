//! HTTP/1.1 servers on free loopback ports inside this process, for what the server under test and its client call.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
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
        let is_length = name.eq_ignore_ascii_case("content-length");
        value.trim().parse().ok().filter(|_| is_length)
    };
    let length: u64 = head.lines().find_map(header).unwrap_or_default();
    tokio::io::copy(&mut (&mut stream).take(length), &mut tokio::io::sink()).await?;
    Ok(Request { line, stream })
}
