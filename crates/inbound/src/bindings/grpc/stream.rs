//! A server-streaming response: each event of a task is one message.
//!
//! All frames that are ready are sent in one write. The stream ends with a status: OK after the last event, UNAVAILABLE
//! when the server drains, so that clients reconnect, UNAUTHENTICATED when the caller's credential has expired or was
//! revoked. The event ids that a client needs to resume are in the metadata:
//! that of the first message in the headers, that of the last one in the trailers. (At the start it is unknown whether
//! there will be a task. A response that is one bare message therefore carries the first id of a task that does not
//! exist; there is nothing to resume.) An idle stream sends nothing; dead connections are detected by HTTP/2 pings.

use std::{convert::Infallible, pin::pin, sync::Arc};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{Clock, Frame, MemoryBudget, Reservation, StreamItem, TaskStream};
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::StreamBody;
use hyper::body;
use protocol::{Error, ErrorKind, Event};

use super::{
    deadline::Deadline,
    message::{self, ReplySubject},
    status::{self, Refusal, StatusWriter},
};
use crate::{
    request::{access_log::StreamEntry, trace::RequestId},
    response::respond,
};

/// Metadata: the id of the stream's first event.
const FIRST: HeaderName = HeaderName::from_static("a2ad-first-event-id");
/// Metadata: the id of the last event that was sent.
const LAST: HeaderName = HeaderName::from_static("a2ad-last-event-id");

/// What a stream keeps of its call.
pub(super) struct StreamContext {
    pub(super) status_writer: StatusWriter,
    pub(super) deadline: Deadline,
    /// Limit of one message.
    pub(super) max_bytes: usize,
    pub(super) request_id: RequestId,
    pub(super) clock: Clock,
    pub(super) log_entry: StreamEntry,
    pub(super) memory: MemoryBudget,
    /// The memory reserved for the snapshot that the stream begins with; released when that is encoded.
    pub(super) snapshot_memory: Option<Arc<Reservation>>,
}

/// Responds to a call with its stream.
pub(super) fn respond(stream: TaskStream, context: StreamContext) -> Response {
    let first = stream.first_seq();
    let messages = Messages { stream: Some(stream), context, last: None, pending_error: None };
    let frames = stream::unfold(messages, |mut messages| async move {
        let frame = messages.next().await?;
        Some((Ok::<_, Infallible>(frame), messages))
    });
    let mut response = status::response_with(Body::new(StreamBody::new(frames)));
    if let Some(first) = first {
        response.headers_mut().insert(FIRST, HeaderValue::from(first));
    }
    response
}

struct Messages {
    /// `None` after the end has been sent.
    stream: Option<TaskStream>,
    context: StreamContext,
    last: Option<u64>,
    /// An error to send after messages that were encoded before it.
    pending_error: Option<Error>,
}

impl Messages {
    /// The next frame of the body; `None` after the trailers.
    async fn next(&mut self) -> Option<body::Frame<Bytes>> {
        let stream = self.stream.as_mut()?;
        if let Some(error) = self.pending_error.take() {
            return Some(self.fail(error));
        }
        let request_id = self.context.request_id;
        let item = {
            let following = pin!(async {
                stream.next().await.map_err(|error| respond::to_caller_error(error, request_id))
            });
            self.context.deadline.within(following).await
        };
        let frame = match item {
            Ok(StreamItem::Frames(frames)) => {
                let mut out = Vec::with_capacity(frames.len() * 256);
                let encoded = self.encode(&mut out, frames);
                self.context.snapshot_memory = None;
                match encoded {
                    Err(error) if out.is_empty() => self.fail(error),
                    encoded => {
                        self.pending_error = encoded.err();
                        body::Frame::data(self.context.memory.hold(out))
                    }
                }
            }
            Ok(StreamItem::End) => self.end(StatusWriter::ok()),
            Ok(StreamItem::Draining) => self.fail(draining()),
            Ok(StreamItem::Expired) => self.fail(expired()),
            Err(error) => self.fail(error),
        };
        Some(frame)
    }

    /// Encodes frames up to the first error.
    fn encode(&mut self, out: &mut Vec<u8>, frames: Vec<Frame>) -> Result<(), Error> {
        for frame in frames {
            let seq = match frame {
                Frame::Entry { seq, entry } => {
                    let event = entry.event().map_err(|error| {
                        respond::to_caller_error(engine::Error::from(error), self.context.request_id)
                    })?;
                    self.write(out, event)?;
                    seq
                }
                Frame::Snapshot { seq, task, .. } => {
                    self.write(out, &Event::Task(*task))?;
                    seq
                }
            };
            self.last = Some(seq);
        }
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>, event: &Event) -> Result<(), Error> {
        self.context.log_entry.record_event(event);
        let service = self.context.status_writer.service;
        message::append(out, self.context.max_bytes, |out| out.extend(service.encode_event(event)))
            .map_err(|error| message::add_retrieval_hint(error, ReplySubject::event(event)))
    }

    /// An error after the first message ends the stream.
    fn fail(&mut self, error: Error) -> body::Frame<Bytes> {
        self.context.log_entry.set_error(&error);
        let trailers =
            self.context.status_writer.error_trailers(&Refusal::from(error), self.context.clock.now());
        self.end(trailers)
    }

    fn end(&mut self, mut trailers: HeaderMap) -> body::Frame<Bytes> {
        self.stream = None;
        if let Some(last) = self.last {
            trailers.insert(LAST, HeaderValue::from(last));
        }
        body::Frame::trailers(trailers)
    }
}

fn expired() -> Error {
    Error::new(
        ErrorKind::Unauthenticated,
        "the credential has expired; the task continues, subscribe to it again with a new one",
    )
}

fn draining() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the server is shutting down; the task continues, subscribe to it again",
    )
}
