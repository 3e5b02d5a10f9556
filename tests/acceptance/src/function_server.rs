//! Functions that stream their output over HTTP, each piece only when the check allows it.

use std::{io, sync::Arc};

use tokio::{io::AsyncWriteExt as _, sync::Semaphore};

use super::{
    CheckError,
    loopback::{LoopbackServer, Request},
};

/// The number of pieces that a function sends: the JSON values `{"piece":1}`, `{"piece":2}` and so on.
pub(crate) const PIECES: usize = 3;

/// Serves the functions `/events` (server-sent events), `/lines` (JSON lines) and `/broken` (JSON lines, ends after the
/// first one without the end of its response) until this value is dropped.
pub(crate) struct FunctionServer {
    server: LoopbackServer,
    allowed: Arc<Semaphore>,
}

impl FunctionServer {
    pub(crate) async fn start() -> Result<Self, CheckError> {
        let allowed = Arc::new(Semaphore::new(0));
        let pieces = Arc::clone(&allowed);
        let server = LoopbackServer::start(move |request| respond(request, Arc::clone(&pieces))).await?;
        Ok(Self { server, allowed })
    }

    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        &self.server.host
    }

    /// Lets the function that is called send one more piece.
    pub(crate) fn allow_piece(&self) {
        self.allowed.add_permits(1);
    }
}

async fn respond(request: Request, allowed: Arc<Semaphore>) -> io::Result<()> {
    let (media_type, pieces) = match request.line.as_str() {
        "POST /events" => ("text/event-stream", PIECES),
        "POST /lines" => ("application/x-ndjson", PIECES),
        "POST /broken" => ("application/x-ndjson", 1),
        _ => return request.respond_not_found().await,
    };
    let mut stream = request.stream;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    for number in 1..=pieces {
        allowed.acquire().await.map_err(io::Error::other)?.forget();
        let value = piece(number);
        let text =
            if media_type == "text/event-stream" { format!("data: {value}\n\n") } else { value + "\n" };
        stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await?;
        stream.flush().await?;
    }
    if pieces == PIECES {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    stream.shutdown().await
}

/// The JSON text of a piece.
pub(crate) fn piece(number: usize) -> String {
    format!(r#"{{"piece":{number}}}"#)
}
