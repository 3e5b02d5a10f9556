//! Slow readers of HTTP/2.
//!
//! Over HTTP/1.1 a peer that stops reading blocks the connection's writes, and [`super::connection_io`] ends it. Over HTTP/2
//! it opens no window for one stream, reads everything else and answers pings: nothing blocks, and the response would be
//! held for as long as the peer likes. So a response is handed on in pieces, each when the one before it has found room in
//! the window, and a stream whose peer takes no piece for a whole window of time is reset. The connection goes on.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::time::Sleep;

/// What a peer has to read within a window of time: 256 bytes a second over 30 seconds. hyper takes a piece as a whole where
/// one byte of it has room, and asks for the next when that one fits.
const PIECE: usize = 256 * 30;

tokio::task_local! {
    /// How far the peer of the stream that is being polled has read.
    static READING: Arc<Reading>;
}

/// Odd while the peer has a piece that it may not have read, even when it has asked for more.
#[derive(Default)]
struct Reading(AtomicU32);

impl Reading {
    fn hand_on(&self) {
        self.0.fetch_or(1, Ordering::Relaxed);
    }

    fn asked_for_more(&self) {
        let state = self.0.load(Ordering::Relaxed);
        // Only the stream's own task changes it.
        self.0.store(state.wrapping_add(state & 1), Ordering::Relaxed);
    }

    /// The piece that the peer has not read yet.
    fn unread(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|state| state & 1 == 1)
    }
}

/// A stream that ends, and so is reset, when its peer reads no piece for this long.
pub(super) async fn reset_when_unread(stream: impl Future<Output = ()>, window: Duration) {
    let reading = Arc::new(Reading::default());
    let mut stream = std::pin::pin!(READING.scope(Arc::clone(&reading), stream));
    let mut unread_since: Option<(u32, Pin<Box<Sleep>>)> = None;
    std::future::poll_fn(|cx| {
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let Some(piece) = reading.unread() else {
            unread_since = None;
            return Poll::Pending;
        };
        if unread_since.as_ref().is_none_or(|(unread, _)| *unread != piece) {
            unread_since = Some((piece, Box::pin(tokio::time::sleep(window))));
        }
        unread_since.as_mut().map_or(Poll::Pending, |(_, sleep)| sleep.as_mut().poll(cx))
    })
    .await;
}

/// The body of a response to the stream that is being polled, in pieces.
pub(super) fn in_pieces(body: Body) -> Body {
    if body.is_end_stream() {
        return body;
    }
    let Ok(reading) = READING.try_with(Arc::clone) else { return body };
    reading.hand_on();
    Body::new(Pieces { body, rest: Bytes::new(), reading, ended: false })
}

struct Pieces {
    body: Body,
    /// What is left of the last frame of the body.
    rest: Bytes,
    reading: Arc<Reading>,
    ended: bool,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.reading.asked_for_more();
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    self.ended = true;
                    return Poll::Ready(None);
                }
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        self.reading.hand_on();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    /// Not before the peer has made room for the last piece: hyper lets go of a stream that ends, and the piece would be
    /// held without a timeout.
    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        let (left, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(left.lower() + rest);
        if let Some(upper) = left.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
