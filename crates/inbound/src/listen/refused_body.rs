//! The body of an HTTP/2 request that was answered before it had arrived.
//!
//! A response may be complete before the request is: a credential that is not valid is refused without the body. Then the
//! stream ends for hyper as soon as nobody holds the body any more, and a client that still sends is told so with a
//! reset (`RST_STREAM` with `NO_ERROR`). RFC 9113, section 8.1, allows that and forbids clients to discard the response
//! because of it, but some do: curl 7.88 then fails with code 92 and shows no response. So the rest of such a body is read and
//! discarded, and the stream ends without a reset, with the bounds of HTTP/1.1 (`connection_io.rs`). A body that is
//! too slow or too large is still reset.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf as _;
use http_body_util::BodyExt as _;
use hyper::{
    body::{Body as _, Frame, Incoming, SizeHint},
    rt::Executor as _,
};
use tokio::time::{Instant, timeout_at};

use super::{connection_io::MAX_DISCARDED, streams::StreamCollector};
use crate::request::body;

/// The body of a request. What is left of it when it is dropped is discarded by the connection.
pub(super) struct RefusableBody {
    /// `None` when it was dropped.
    body: Option<Incoming>,
    received: BodyProgress,
    streams: StreamCollector,
}

/// How much of a body has arrived since its request.
#[derive(Clone, Copy)]
struct BodyProgress {
    since: Instant,
    bytes: u64,
}

impl RefusableBody {
    /// The body of a request that arrives now on the connection with these streams.
    pub(super) fn new(body: Incoming, streams: &StreamCollector) -> Self {
        let received = BodyProgress { since: Instant::now(), bytes: 0 };
        Self { body: Some(body), received, streams: streams.clone() }
    }
}

impl hyper::body::Body for RefusableBody {
    type Data = bytes::Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => self.received.count(frame),
            // Nothing is left to discard.
            Some(Err(_)) | None => self.body = None,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for RefusableBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take_if(|body| !body.is_end_stream()) {
            self.streams.execute(discard(body, self.received));
        }
    }
}

impl BodyProgress {
    fn count(&mut self, frame: &Frame<bytes::Bytes>) {
        self.bytes += frame.data_ref().map_or(0, |data| data.remaining() as u64);
    }
}

/// Reads a body until it ends, is too slow, or is too large.
async fn discard(mut body: Incoming, mut received: BodyProgress) {
    let max = received.bytes + MAX_DISCARDED;
    while received.bytes <= max {
        let due = body::due(received.since, received.bytes);
        match timeout_at(due, body.frame()).await {
            Ok(Some(Ok(frame))) => received.count(&frame),
            Ok(Some(Err(_)) | None) | Err(_) => return,
        }
    }
}
