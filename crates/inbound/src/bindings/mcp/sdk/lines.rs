//! MCP on a pair of byte streams: one message in each line.
//!
//! Unlike the library's own transport, this one keeps the text of a request beside it, because the library's tree of
//! values loses digits of numbers, and answers what is not a message with the reason.

use std::{
    io, mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use engine::Clock;
use protocol::{
    Dialect, Error, ErrorKind,
    jsonrpc::{self, Id, Refusal},
};
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, GetExtensions as _, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    task::JoinSet,
};

use crate::bindings::mcp::message;

/// A mark that some programs write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The most refusals that wait for a peer that does not read.
const MAX_REFUSALS: usize = 16;
/// How long the last of them may take to be written.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// The text of a request, until its handler takes it.
#[derive(Clone)]
pub(super) struct RequestText(Arc<Mutex<Option<Bytes>>>);

impl RequestText {
    fn new(text: Bytes) -> Self {
        Self(Arc::new(Mutex::new(Some(text))))
    }

    pub(super) fn take(&self) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Reads and writes messages.
pub(super) struct LineTransport<R, W> {
    input: BufReader<R>,
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// The line is longer than the limit; the rest of it is discarded.
    is_too_long: bool,
    /// The longest line.
    max_bytes: usize,
    output: Arc<tokio::sync::Mutex<W>>,
    /// Responses to what is not a message, while they are written.
    refusals: JoinSet<io::Result<()>>,
    clock: Clock,
}

/// A line of the input.
enum Line {
    Whole(Bytes),
    TooLong,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Send + Unpin + 'static> LineTransport<R, W> {
    pub(super) fn new(input: R, output: W, max_bytes: usize, clock: Clock) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            is_too_long: false,
            max_bytes,
            output: Arc::new(tokio::sync::Mutex::new(output)),
            refusals: JoinSet::new(),
            clock,
        }
    }

    /// The next line; `None` at the end. Cancel safe: what has been read stays in `self`.
    async fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.input.fill_buf().await?;
            let is_end = available.is_empty();
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(available.len(), |position| position + 1);
            if self.line.len() + taken > self.max_bytes {
                self.is_too_long = true;
                self.line = Vec::new();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.input.consume(taken);
            if newline.is_none() && !is_end {
                continue;
            }
            let line = Bytes::from(mem::take(&mut self.line));
            return Ok(match mem::take(&mut self.is_too_long) {
                true => Some(Line::TooLong),
                false if is_end && line.is_empty() => None,
                false => Some(Line::Whole(line)),
            });
        }
    }

    /// Reads the message in a line; `None` if there is nothing to handle.
    fn message(&self, line: Line) -> Result<Option<ClientJsonRpcMessage>, Refusal> {
        let Line::Whole(line) = line else {
            let text =
                format!("the message is larger than {} bytes; send files by url instead", self.max_bytes);
            return Err(Refusal { id: Id::null(), error: Error::new(ErrorKind::BodyTooLarge, text) });
        };
        let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line).trim_ascii();
        if text.is_empty() {
            return Ok(None);
        }
        let text = line.slice_ref(text);
        let head = message::read(&text)?;
        match (serde_json::from_slice(&text), head.id) {
            (Ok(mut message), _) => {
                if let ClientJsonRpcMessage::Request(request) = &mut message {
                    request.request.extensions_mut().insert(RequestText::new(text));
                }
                Ok(Some(message))
            }
            // Nobody waits for a response to a notification.
            (Err(error), None) => {
                tracing::debug!(%error, method = head.method, "a notification cannot be read");
                Ok(None)
            }
            (Err(_), Some(id)) => {
                let error = Error::new(ErrorKind::InvalidRequest, "the message cannot be read as one of MCP");
                Err(Refusal { id, error })
            }
        }
    }

    fn refuse(&mut self, Refusal { id, error }: &Refusal) {
        let now = self.clock.now();
        let text = jsonrpc::encode_error(id, |writer| Dialect::V1.encode_error(writer, error, now));
        self.refusals.spawn(write(Arc::clone(&self.output), text));
    }
}

async fn write<W: AsyncWrite + Unpin>(
    output: Arc<tokio::sync::Mutex<W>>,
    mut text: Vec<u8>,
) -> io::Result<()> {
    text.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&text).await?;
    output.flush().await
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write(output, serde_json::to_vec(&message)?).await }
    }

    /// Cancel safe.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            while self.refusals.try_join_next().is_some() {}
            while self.refusals.len() >= MAX_REFUSALS {
                self.refusals.join_next().await;
            }
            let line = match self.next_line().await {
                Ok(line) => line?,
                Err(error) => {
                    tracing::warn!(%error, "the input cannot be read");
                    return None;
                }
            };
            match self.message(line) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => self.refuse(&refusal),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        let written = async { while self.refusals.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(CLOSE_LIMIT, written).await;
        self.refusals.abort_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, duplex, split};

    use super::*;

    /// What is received of these bytes, which arrive in pieces of this size, and what is written.
    async fn exchange(bytes: &[u8], piece: usize) -> (Vec<String>, String) {
        let (ours, theirs) = duplex(64 << 10);
        let (input, output) = split(ours);
        let mut transport = LineTransport::new(input, output, 200, Clock::system());
        let (mut answers, mut sender) = split(theirs);
        let mut received = Vec::new();
        let sending = async {
            for piece in bytes.chunks(piece) {
                sender.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            sender.shutdown().await.unwrap();
        };
        let receiving = async {
            while let Some(message) = transport.receive().await {
                let ClientJsonRpcMessage::Request(mut request) = message else { continue };
                let text = request.request.extensions_mut().remove::<RequestText>();
                let text = text.and_then(|text| text.take()).unwrap();
                received.push(String::from_utf8(text.to_vec()).unwrap());
            }
            transport.close().await.unwrap();
            drop(transport);
        };
        tokio::join!(sending, receiving);
        let mut written = String::new();
        answers.read_to_string(&mut written).await.unwrap();
        (received, written)
    }

    #[tokio::test]
    async fn each_line_is_a_message_with_its_text_or_is_refused() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":12345678901234567890123}}}"#;
        let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        let long =
            format!(r#"{{"jsonrpc":"2.0","id":3,"method":"ping","params":{{"x":"{}"}}}}"#, "x".repeat(300));
        let text = format!(
            "\u{feff}{call}\r\n\n  {ping}  \n{long}\nnot json\n{{\"jsonrpc\":\"2.0\",\"id\":\"q\"}}\n{ping}"
        );
        for piece in [1, 7, 10_000] {
            let (received, written) = exchange(text.as_bytes(), piece).await;
            assert_eq!(received, [call, ping, ping], "{piece}");
            let answers: Vec<&str> = written.lines().collect();
            assert_eq!(answers.len(), 3, "{written}");
            assert!(answers[0].contains("larger than 200 bytes") && answers[0].contains(r#""id":null"#));
            assert!(answers[1].contains("-32700") && answers[1].contains("not JSON"));
            assert!(answers[2].contains("-32600") && answers[2].contains(r#""id":"q""#));
        }
    }
}
