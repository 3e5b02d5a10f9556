//! A unary response: one message, then the trailers with the status.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::Reservation;
use http::{HeaderMap, HeaderName, HeaderValue};
use hyper::body::{Frame, SizeHint};
use protocol::{Error, Reply, grpc::Service};

use super::{
    message::{self, ReplySubject},
    status::{self, StatusWriter},
};

/// Metadata: the id of the task that a send returned, for clients that cannot take the message.
const TASK: HeaderName = HeaderName::from_static("a2ad-task");
/// A message longer than this may exceed the limit of a client, which still receives the metadata. The usual limit of
/// clients is 4 MiB.
const LARGE: usize = 64 << 10;

/// Encodes a reply as a response; an error if the message exceeds `max_bytes`.
pub(super) fn respond(
    service: Service,
    reply: &Reply,
    max_bytes: usize,
    memory: Arc<Reservation>,
) -> Result<Response, Error> {
    let mut out = Vec::with_capacity(1_024);
    let subject = ReplySubject::reply(reply);
    message::append(&mut out, max_bytes, |out| out.extend(service.encode_reply(reply)))
        .map_err(|error| message::add_retrieval_hint(error, subject))?;
    let is_large = out.len() > LARGE;
    let message = memory.hold(out);
    let mut response =
        status::response_with(Body::new(UnaryBody { message, trailers: Some(StatusWriter::ok()) }));
    if let (true, Reply::SentTask(_), ReplySubject::Task(id)) = (is_large, reply, subject)
        && let Ok(mut id) = HeaderValue::from_str(id.as_str())
    {
        // Not for the compression table of the connection: every value is new and would displace the headers that repeat.
        id.set_sensitive(true);
        response.headers_mut().insert(TASK, id);
    }
    Ok(response)
}

/// A body without message and trailers.
pub(super) fn empty_body() -> Body {
    Body::new(UnaryBody { message: Bytes::new(), trailers: None })
}

/// The message, then the trailers. Its size hint is not exact, because an exact one would add a `content-length` header
/// that gRPC has no use for.
struct UnaryBody {
    message: Bytes,
    trailers: Option<HeaderMap>,
}

impl hyper::body::Body for UnaryBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = std::mem::take(&mut self.message);
        let frame = if message.is_empty() {
            self.trailers.take().map(Frame::trailers)
        } else {
            Some(Frame::data(message))
        };
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        if !self.message.is_empty() {
            hint.set_upper(self.message.len() as u64);
        }
        hint
    }
}
