//! An answer that is one message: its bytes, then how the call ended.

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
    message::{self, About},
    status::{self, StatusWriter},
};

/// The task that a send is answered with.
const TASK: HeaderName = HeaderName::from_static("a2ad-task");

/// Answers a call with one message, if it is not too large to be sent.
pub(super) fn respond(
    service: Service,
    reply: &Reply,
    max_bytes: usize,
    memory: Arc<Reservation>,
) -> Result<Response, Error> {
    let mut out = Vec::with_capacity(1_024);
    let about = About::reply(reply);
    message::append(&mut out, max_bytes, |out| out.extend(service.encode_reply(reply)))
        .map_err(|error| message::advise(error, about))?;
    let message = memory.hold(out);
    let mut response = status::answer(Body::new(Whole { message, trailers: Some(StatusWriter::well()) }));
    // A client that takes smaller messages than this one still reads the metadata.
    if let (Reply::SentTask(_), About::Task(id)) = (reply, about)
        && let Ok(id) = HeaderValue::from_str(id.as_str())
    {
        response.headers_mut().insert(TASK, id);
    }
    Ok(response)
}

/// No message, and nothing to be said behind it.
pub(super) fn nothing() -> Body {
    Body::new(Whole { message: Bytes::new(), trailers: None })
}

/// The message, then the trailers. It does not say exactly how long it is: that would be a header that gRPC has no use for.
struct Whole {
    message: Bytes,
    trailers: Option<HeaderMap>,
}

impl hyper::body::Body for Whole {
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
