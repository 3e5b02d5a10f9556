//! A task's frames as server-sent events.
//!
//! All frames that are ready leave in one write. Each carries the number of its event as `id:`. A quiet stream sends a
//! comment at every keep-alive interval, so that both ends notice a dead connection. A slow reader delays nobody: its
//! frames are read from the log when it asks for more.
//!
//! Comments and `retry` end in one newline. A blank line would dispatch an event: the specification drops an event without
//! data, but `httpx-sse` delivers one once an `id` was seen, and several official SDKs fail to parse its empty data.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{Clock, Frame, MemoryBudget, Next, Reservation, TaskStream};
use futures_util::stream;
use http::{HeaderValue, header};
use protocol::{Dialect, Error, Event, Timestamp, dialect::Frames, jsonrpc};

use crate::{
    respond::{self, Envelope, Reader},
    server_state::ServerState,
    trace::Watched,
};

/// Sent after each keep-alive interval without an event.
const COMMENT: &[u8] = b":\n";
/// Asks the client to reconnect in a second; the end of the body follows.
const RETRY: &[u8] = b"retry: 1000\n";

/// Answers a call with its stream.
pub(crate) fn respond(
    stream: TaskStream,
    reader: &Reader<'_>,
    line: Watched,
    request_id: u64,
    server_state: &ServerState,
    memory: Arc<Reservation>,
) -> Response {
    let (start, end) = match &reader.envelope {
        Envelope::Rpc(id) => (jsonrpc::result_start(id), jsonrpc::RESULT_END),
        Envelope::Http { .. } => (Vec::new(), &b""[..]),
    };
    let events = Events {
        stream: Some(stream),
        around: Around { start, end },
        envelope: reader.envelope.clone(),
        dialect: reader.dialect,
        frames: Frames::new(reader.dialect, reader.profile.style),
        line,
        request_id,
        clock: server_state.engine.clock().clone(),
        keep_alive: server_state.keep_alive,
        memory: server_state.engine.memory().clone(),
        first: Some(memory),
    };
    let body = stream::unfold(events, |mut events| async move {
        let bytes = events.next().await?;
        Some((Ok::<_, Infallible>(bytes), events))
    });
    reader.label(stream_of(Body::from_stream(body)))
}

/// Refuses a call in a stream of one event, where that is all its reader understands. What HTTP has a status for is
/// refused with that as always, and 1.0 has a rule of its own.
pub(crate) fn refuse(reader: &Reader<'_>, error: &Error, now: Timestamp) -> Response {
    if reader.dialect.reads_plain_refusals() || error.kind.row().rpc_http != 200 {
        return respond::refuse(reader, error, now);
    }
    reader.label(stream_of(Body::from(error_event(&reader.envelope, reader.dialect, error, now))))
}

fn stream_of(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// An error as an event. Without an envelope around it, the name of the event is how clients recognise it.
fn error_event(envelope: &Envelope, dialect: Dialect, error: &Error, now: Timestamp) -> Vec<u8> {
    let mut out = match envelope {
        Envelope::Rpc(_) => b"data: ".to_vec(),
        Envelope::Http { .. } => b"event: error\ndata: ".to_vec(),
    };
    out.extend(envelope.error(dialect, error, envelope.status(error), now));
    out.extend_from_slice(b"\n\n");
    out
}

struct Events {
    /// Gone when the last event has been said.
    stream: Option<TaskStream>,
    around: Around,
    envelope: Envelope,
    dialect: Dialect,
    frames: Frames,
    line: Watched,
    request_id: u64,
    clock: Clock,
    keep_alive: Duration,
    memory: MemoryBudget,
    /// What was reserved for the snapshot that the stream begins with; gone when that is encoded.
    first: Option<Arc<Reservation>>,
}

/// The envelope of every event: its bytes before and after the frame.
struct Around {
    start: Vec<u8>,
    end: &'static [u8],
}

impl Events {
    /// The next bytes of the body; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        let stream = self.stream.as_mut()?;
        match tokio::time::timeout(self.keep_alive, stream.next()).await {
            Err(_) => Some(Bytes::from_static(COMMENT)),
            Ok(Ok(Next::Frames(frames))) => match self.encode(frames) {
                Ok(bytes) => Some(bytes),
                Err(error) => Some(self.fail(error)),
            },
            Ok(Ok(Next::End)) => None,
            Ok(Ok(Next::Cut)) => {
                self.stream = None;
                Some(Bytes::from_static(RETRY))
            }
            Ok(Err(error)) => Some(self.fail(error)),
        }
    }

    fn encode(&mut self, frames: Vec<Frame>) -> Result<Bytes, engine::Error> {
        let mut out = Vec::with_capacity(frames.len() * 512);
        for frame in frames {
            match frame {
                // What is kept is a frame of 1.0 already.
                Frame::Entry { seq, entry } if self.dialect == Dialect::V1 => {
                    self.line.kind(entry.kind());
                    self.around.event(&mut out, seq, entry.v1());
                }
                Frame::Entry { seq, entry } => {
                    self.line.kind(entry.kind());
                    let mut each = |frame: &[u8]| self.around.event(&mut out, seq, frame);
                    self.frames.encode(entry.event()?, &mut each);
                }
                Frame::Snapshot { seq, task, artifacts } => {
                    let task = Event::Task(*task);
                    self.line.event(&task);
                    self.frames.know(artifacts);
                    let mut each = |frame: &[u8]| self.around.event(&mut out, seq, frame);
                    self.frames.encode(&task, &mut each);
                }
            }
        }
        self.first = None;
        Ok(self.memory.hold(out))
    }

    /// An error after the first event is an event too, and the last.
    fn fail(&mut self, error: engine::Error) -> Bytes {
        self.stream = None;
        let error = respond::explain(error, self.request_id);
        self.line.error(&error);
        error_event(&self.envelope, self.dialect, &error, self.clock.now()).into()
    }
}

impl Around {
    /// One frame as an event: the number of what it tells, and the frame in its envelope.
    fn event(&self, out: &mut Vec<u8>, seq: u64, frame: &[u8]) {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(seq.to_string().as_bytes());
        out.extend_from_slice(b"\ndata: ");
        out.extend_from_slice(&self.start);
        out.extend_from_slice(frame);
        out.extend_from_slice(self.end);
        out.extend_from_slice(b"\n\n");
    }
}

#[cfg(test)]
mod tests {
    use protocol::{ErrorKind, ErrorTable, jsonrpc::Id};

    use super::*;

    #[test]
    fn an_error_after_the_first_event_is_told_as_the_binding_tells_errors() {
        let error = Error::new(ErrorKind::TaskNotFound, "task not found: t");
        let now = Timestamp::parse("2026-01-02T03:04:05.678Z").unwrap();
        let event = |envelope: &Envelope, dialect| {
            String::from_utf8(error_event(envelope, dialect, &error, now)).unwrap()
        };
        let http = Envelope::Http { media_type: "", errors: ErrorTable::default() };
        let told = event(&http, Dialect::V1);
        let start = "event: error\ndata: {\"error\":{\"code\":404,\"status\":\"NOT_FOUND\",\"message\":\"";
        assert!(told.starts_with(start), "{told}");
        assert!(told.ends_with("]}}\n\n") && told.lines().count() == 3, "{told}");
        let bare = "event: error\ndata: {\"code\":-32001,\"message\":\"Task not found\"}\n\n";
        assert_eq!(event(&http, Dialect::V03Proto), bare);
        let told = event(&Envelope::Rpc(Id::null()), Dialect::V1);
        assert!(told.starts_with(r#"data: {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"#), "{told}");
    }
}
