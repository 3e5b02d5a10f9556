//! A task's frames as the messages of one answer.
//!
//! All frames that are ready leave in one write. The end is a status: none but OK where everything was said, UNAVAILABLE
//! where the server drains, so that clients come back. Numbers of events, which a client needs
//! to resume, are in the metadata: that of the first message at the start, that of the last one at the end; each message
//! is one event. (Whether there will be a task is not known at the start: an answer that is one bare message is said to
//! begin where its task would have; there is nothing to resume.) A quiet stream sends nothing; dead connections are noticed by HTTP/2's pings.

use std::{convert::Infallible, sync::Arc};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{Clock, Frame, MemoryBudget, Next, Reservation, TaskStream};
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::StreamBody;
use hyper::body;
use protocol::{Error, ErrorKind, Event};

use super::{
    deadline::Deadline,
    message::{self, About},
    status::{self, Refusal, StatusWriter},
};
use crate::{respond, trace::Watched};

/// The number of the first event of a stream.
const FIRST: HeaderName = HeaderName::from_static("a2ad-first-event-id");
/// The number of the last event that was sent.
const LAST: HeaderName = HeaderName::from_static("a2ad-last-event-id");

/// What a stream needs to know of its call.
pub(super) struct Follow {
    pub(super) status_writer: StatusWriter,
    pub(super) deadline: Deadline,
    /// The largest message that is sent.
    pub(super) max_bytes: usize,
    pub(super) request_id: u64,
    pub(super) clock: Clock,
    pub(super) line: Watched,
    pub(super) memory: MemoryBudget,
    /// What was reserved for the snapshot that the stream begins with; gone when that is encoded.
    pub(super) first: Option<Arc<Reservation>>,
}

/// Answers a call with its stream.
pub(super) fn respond(stream: TaskStream, follow: Follow) -> Response {
    let first = stream.first_seq();
    let messages = Messages { stream: Some(stream), follow, last: None, broken: None };
    let frames = stream::unfold(messages, |mut messages| async move {
        let frame = messages.next().await?;
        Some((Ok::<_, Infallible>(frame), messages))
    });
    let mut response = status::answer(Body::new(StreamBody::new(frames)));
    if let Some(first) = first {
        response.headers_mut().insert(FIRST, HeaderValue::from(first));
    }
    response
}

struct Messages {
    /// Gone when the end has been told.
    stream: Option<TaskStream>,
    follow: Follow,
    last: Option<u64>,
    /// What ends the stream, behind messages that were good.
    broken: Option<Error>,
}

impl Messages {
    /// The next frame of the body; `None` behind its trailers.
    async fn next(&mut self) -> Option<body::Frame<Bytes>> {
        let stream = self.stream.as_mut()?;
        if let Some(error) = self.broken.take() {
            return Some(self.fail(error));
        }
        let request_id = self.follow.request_id;
        let following = async { stream.next().await.map_err(|error| respond::explain(error, request_id)) };
        let frame = match self.follow.deadline.within(following).await {
            Ok(Next::Frames(frames)) => {
                let mut out = Vec::with_capacity(frames.len() * 256);
                let encoded = self.encode(&mut out, frames);
                self.follow.first = None;
                match encoded {
                    Err(error) if out.is_empty() => self.fail(error),
                    encoded => {
                        self.broken = encoded.err();
                        body::Frame::data(self.follow.memory.hold(out))
                    }
                }
            }
            Ok(Next::End) => self.end(StatusWriter::well()),
            Ok(Next::Cut) => self.fail(cut()),
            Err(error) => self.fail(error),
        };
        Some(frame)
    }

    /// Writes frames until one cannot be written.
    fn encode(&mut self, out: &mut Vec<u8>, frames: Vec<Frame>) -> Result<(), Error> {
        for frame in frames {
            let seq = match frame {
                Frame::Entry { seq, entry } => {
                    let event = entry.event().map_err(|error| {
                        respond::explain(engine::Error::from(error), self.follow.request_id)
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
        self.follow.line.event(event);
        let service = self.follow.status_writer.service;
        message::append(out, self.follow.max_bytes, |out| out.extend(service.encode_event(event)))
            .map_err(|error| message::advise(error, About::event(event)))
    }

    /// An error after the first message is the end.
    fn fail(&mut self, error: Error) -> body::Frame<Bytes> {
        self.follow.line.error(&error);
        let trailers = self.follow.status_writer.failed(&Refusal::from(error), self.follow.clock.now());
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

fn cut() -> Error {
    Error::new(ErrorKind::Unavailable, "the server ends its streams; the task goes on, subscribe to it again")
}
