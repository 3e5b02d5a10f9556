//! A task's frames as server-sent events.
//!
//! All frames that are ready leave in one write. Each carries the number of its event as `id:`. A stream that
//! has nothing to say sends a comment now and then, so that both ends notice a dead connection. A reader that
//! does not read holds nothing up: its frames are taken from the log when it asks for more.

use std::{convert::Infallible, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{Clock, Frame, Next, TaskStream};
use futures_util::stream;
use http::{HeaderValue, header};
use protocol::{
    dialect::v1,
    json::write::Writer,
    jsonrpc::{self, Id},
};

use crate::respond;

/// How long a stream is silent before it says that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Tells the client to come back soon; the end of the body follows.
const COME_BACK: &[u8] = b"retry: 1000\n\n";

/// Answers a call with its stream.
pub(crate) fn respond(stream: TaskStream, id: &Id, request_id: String, clock: Clock) -> Response {
    let events =
        Events { stream: Some(stream), start: jsonrpc::result_start(id), id: id.clone(), request_id, clock };
    let body = stream::unfold(events, |mut events| async move {
        let bytes = events.next().await?;
        Some((Ok::<_, Infallible>(bytes), events))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Events {
    /// Gone when the last event has been said.
    stream: Option<TaskStream>,
    /// The JSON-RPC envelope of every event up to its result.
    start: Vec<u8>,
    id: Id,
    request_id: String,
    clock: Clock,
}

impl Events {
    /// The next bytes of the body; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        let stream = self.stream.as_mut()?;
        match tokio::time::timeout(KEEP_ALIVE, stream.next()).await {
            Err(_) => Some(Bytes::from_static(b":\n\n")),
            Ok(Ok(Next::Frames(frames))) => Some(self.encode(&frames)),
            Ok(Ok(Next::End)) => None,
            Ok(Ok(Next::Cut)) => {
                self.stream = None;
                Some(Bytes::from_static(COME_BACK))
            }
            Ok(Err(error)) => {
                self.stream = None;
                Some(self.failure(error))
            }
        }
    }

    fn encode(&self, frames: &[Frame]) -> Bytes {
        let mut out = Vec::with_capacity(frames.len() * 512);
        for frame in frames {
            match frame {
                Frame::Entry { seq, entry } => self.event(&mut out, *seq, entry.v1()),
                Frame::Snapshot { seq, task } => {
                    let mut writer = Writer::new();
                    v1::event::encode_task(&mut writer, task);
                    self.event(&mut out, *seq, &writer.finish());
                }
            }
        }
        out.into()
    }

    fn event(&self, out: &mut Vec<u8>, seq: u64, frame: &[u8]) {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(seq.to_string().as_bytes());
        out.extend_from_slice(b"\ndata: ");
        out.extend_from_slice(&self.start);
        out.extend_from_slice(frame);
        out.extend_from_slice(jsonrpc::RESULT_END);
        out.extend_from_slice(b"\n\n");
    }

    /// An error after the first event is an event too.
    fn failure(&self, error: engine::Error) -> Bytes {
        let error = respond::explain(error, &self.request_id);
        let now = self.clock.now();
        let mut out = b"data: ".to_vec();
        out.extend(jsonrpc::encode_error(&self.id, |writer| v1::error::encode(writer, &error, now)));
        out.extend_from_slice(b"\n\n");
        out.into()
    }
}
