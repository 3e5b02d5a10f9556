//! A task's frames as server-sent events.
//!
//! All frames that are ready are sent in one write. Each carries its event id as `id:`. An idle stream sends a comment
//! at every keep-alive interval, so that both ends detect a dead connection. A slow reader delays no other: its frames
//! are read from the log when it asks for more.
//!
//! Comments and `retry` end in one newline. A blank line would dispatch an event: the specification drops an event
//! without data, but `httpx-sse` delivers one once an `id` was seen, and several official SDKs fail to parse its empty
//! data.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{
    Clock, Frame, MemoryBudget, Reservation, StreamItem, TaskStream,
    log::{Entry, Seq},
};
use futures_util::stream;
use http::{HeaderValue, header};
use protocol::{ArtifactId, Dialect, Error, Task, Timestamp, dialect::Frames, jsonrpc};

use crate::{
    request::{access_log::StreamEntry, trace::RequestId},
    response::respond::{self, Envelope, ResponseFormat},
    server_state::ServerState,
};

/// Sent after each keep-alive interval without an event.
const COMMENT: &[u8] = b":\n";
/// Asks the client to reconnect in a second; the end of the body follows.
pub(crate) const RETRY: &[u8] = b"retry: 1000\n";

/// How the events of a stream are written.
pub(crate) trait EventEncoder: Send + 'static {
    /// The task that a stream begins with, and the artifacts that the client has or gets with it.
    fn snapshot(&mut self, out: &mut Vec<u8>, seq: Seq, task: Task, artifacts: Vec<ArtifactId>);

    /// One event of the log.
    fn entry(&mut self, out: &mut Vec<u8>, seq: Seq, entry: &Entry) -> Result<(), engine::Error>;

    /// An error after the first event, as the last one.
    fn error(&self, out: &mut Vec<u8>, error: &Error, now: Timestamp);
}

/// Responds to a call over JSON-RPC or HTTP+JSON with its stream.
pub(crate) fn respond(
    stream: TaskStream,
    format: &ResponseFormat<'_>,
    log_entry: StreamEntry,
    request_id: RequestId,
    server_state: &ServerState,
    memory: Arc<Reservation>,
) -> Response {
    let (start, end) = match &format.envelope {
        Envelope::Rpc(id) => (jsonrpc::result_start(id), jsonrpc::RESULT_END),
        Envelope::Http { .. } => (Vec::new(), &b""[..]),
    };
    let encoder = DialectEvents {
        event_envelope: EventEnvelope { start, end },
        envelope: format.envelope.clone(),
        dialect: format.dialect,
        frames: Frames::new(format.dialect, format.profile.style),
    };
    format.set_dialect_header(events(stream, encoder, log_entry, request_id, server_state, memory))
}

/// Responds with the events of a stream.
pub(crate) fn events<E: EventEncoder>(
    stream: TaskStream,
    encoder: E,
    log_entry: StreamEntry,
    request_id: RequestId,
    server_state: &ServerState,
    memory: Arc<Reservation>,
) -> Response {
    let events = Events {
        stream: Some(stream),
        encoder,
        log_entry,
        request_id,
        clock: server_state.engine.clock().clone(),
        keep_alive: server_state.keep_alive,
        memory: server_state.engine.memory().clone(),
        snapshot_memory: Some(memory),
    };
    let body = stream::unfold(events, |mut events| async move {
        let bytes = events.next().await?;
        Some((Ok::<_, Infallible>(bytes), events))
    });
    stream_of(Body::from_stream(body))
}

/// Sends an error as a stream of one event, for clients that can read nothing else. Errors with an HTTP status of their
/// own and those of 1.0 are plain responses.
pub(crate) fn error_response(format: &ResponseFormat<'_>, error: &Error, now: Timestamp) -> Response {
    if format.dialect.rules().accepts_plain_stream_errors || error.kind.row().rpc_http != 200 {
        return respond::error_response(format, error, now);
    }
    format.set_dialect_header(stream_of(Body::from(error_event(
        &format.envelope,
        format.dialect,
        error,
        now,
    ))))
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
pub(crate) fn error_event(envelope: &Envelope, dialect: Dialect, error: &Error, now: Timestamp) -> Vec<u8> {
    let mut out = match envelope {
        Envelope::Rpc(_) => b"data: ".to_vec(),
        Envelope::Http { .. } => b"event: error\ndata: ".to_vec(),
    };
    out.extend(envelope.error(dialect, error, envelope.status(error), now));
    out.extend_from_slice(b"\n\n");
    out
}

struct Events<E> {
    /// `None` after the last event has been sent.
    stream: Option<TaskStream>,
    encoder: E,
    log_entry: StreamEntry,
    request_id: RequestId,
    clock: Clock,
    keep_alive: Duration,
    memory: MemoryBudget,
    /// The memory reserved for the snapshot that the stream begins with; released when that is encoded.
    snapshot_memory: Option<Arc<Reservation>>,
}

/// The events of JSON-RPC and HTTP+JSON.
struct DialectEvents {
    event_envelope: EventEnvelope,
    envelope: Envelope,
    dialect: Dialect,
    frames: Frames,
}

/// The envelope of every event: its bytes before and after the frame.
struct EventEnvelope {
    start: Vec<u8>,
    end: &'static [u8],
}

impl<E: EventEncoder> Events<E> {
    /// The next bytes of the body; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        let stream = self.stream.as_mut()?;
        match tokio::time::timeout(self.keep_alive, stream.next()).await {
            Err(_) => Some(Bytes::from_static(COMMENT)),
            Ok(Ok(StreamItem::Frames(frames))) => match self.encode(frames) {
                Ok(bytes) => Some(bytes),
                Err(error) => Some(self.fail(error)),
            },
            Ok(Ok(StreamItem::End)) => None,
            Ok(Ok(StreamItem::Draining | StreamItem::Expired)) => {
                self.stream = None;
                Some(Bytes::from_static(RETRY))
            }
            Ok(Err(error)) => Some(self.fail(error)),
        }
    }

    fn encode(&mut self, frames: Vec<Frame>) -> Result<Bytes, engine::Error> {
        // Enough for most frames of 1.0, so that a large one does not leave twice its size allocated.
        let size = |frame: &Frame| match frame {
            Frame::Entry { entry, .. } => entry.v1().len() + 256,
            Frame::Snapshot { .. } => 512,
        };
        let mut out = Vec::with_capacity(frames.iter().map(size).sum());
        for frame in frames {
            match frame {
                Frame::Entry { seq, entry } => {
                    self.log_entry.record_kind(entry.kind());
                    self.encoder.entry(&mut out, seq, &entry)?;
                }
                Frame::Snapshot { seq, task, artifacts } => {
                    self.log_entry.record_task(&task);
                    self.encoder.snapshot(&mut out, seq, *task, artifacts);
                }
            }
        }
        self.snapshot_memory = None;
        Ok(self.memory.hold(out))
    }

    /// An error after the first event is sent as the last event.
    fn fail(&mut self, error: engine::Error) -> Bytes {
        self.stream = None;
        let error = respond::to_caller_error(error, self.request_id);
        self.log_entry.set_error(&error);
        let mut out = Vec::new();
        self.encoder.error(&mut out, &error, self.clock.now());
        out.into()
    }
}

impl EventEncoder for DialectEvents {
    fn snapshot(&mut self, out: &mut Vec<u8>, seq: Seq, task: Task, artifacts: Vec<ArtifactId>) {
        self.frames.know(artifacts);
        let mut each = |frame: &[u8]| self.event_envelope.event(out, seq, frame);
        self.frames.encode_task(task, &mut each);
    }

    fn entry(&mut self, out: &mut Vec<u8>, seq: Seq, entry: &Entry) -> Result<(), engine::Error> {
        let mut each = |frame: &[u8]| self.event_envelope.event(out, seq, frame);
        match self.dialect {
            // The log stores events as frames of 1.0 already.
            Dialect::V1 => each(entry.v1()),
            Dialect::Draft | Dialect::V03 | Dialect::V03Proto => {
                self.frames.encode(entry.event()?, &mut each);
            }
        }
        Ok(())
    }

    fn error(&self, out: &mut Vec<u8>, error: &Error, now: Timestamp) {
        out.extend(error_event(&self.envelope, self.dialect, error, now));
    }
}

impl EventEnvelope {
    /// Writes one frame as an event: its id, and the frame in its envelope.
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
    fn error_event_has_the_form_of_the_binding() {
        let error = Error::new(ErrorKind::TaskNotFound, "task not found: t");
        let now = Timestamp::parse("2026-01-02T03:04:05.678Z").unwrap();
        let event = |envelope: &Envelope, dialect| {
            String::from_utf8(error_event(envelope, dialect, &error, now)).unwrap()
        };
        let http = Envelope::Http { media_type: "", errors: ErrorTable::default() };
        let event_text = event(&http, Dialect::V1);
        let start = "event: error\ndata: {\"error\":{\"code\":404,\"status\":\"NOT_FOUND\",\"message\":\"";
        assert!(event_text.starts_with(start), "{event_text}");
        assert!(event_text.ends_with("]}}\n\n") && event_text.lines().count() == 3, "{event_text}");
        let bare = "event: error\ndata: {\"code\":-32001,\"message\":\"Task not found\"}\n\n";
        assert_eq!(event(&http, Dialect::V03Proto), bare);
        let event_text = event(&Envelope::Rpc(Id::null()), Dialect::V1);
        assert!(
            event_text.starts_with(r#"data: {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"#),
            "{event_text}"
        );
    }
}
