//! Readers of HTTP/2 that do not read.
//!
//! Over HTTP/1.1 a reader that stops reading stalls the connection's writes, and [`super::patient`] ends it. Over HTTP/2 it
//! opens no window, reads everything else and answers pings: nothing stalls, and the answer would be held for it as long
//! as it likes. So an answer is handed on in small pieces, each when the one before it has found room in the window, and
//! a stream whose reader makes no room for so long as a write may stall is reset. The connection goes on.

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

/// As much as is handed on at a time: a piece is taken as a whole where one byte of it has room.
const PIECE: usize = 64 << 10;

tokio::task_local! {
    /// The reader of the stream that is being driven.
    static READER: Arc<Reader>;
}

/// How far the reader of a stream is: odd while it has something that it may not have read, even when it has asked for more.
#[derive(Default)]
struct Reader(AtomicU32);

impl Reader {
    fn was_given(&self) {
        self.0.fetch_or(1, Ordering::Relaxed);
    }

    fn asks(&self) {
        let turns = self.0.load(Ordering::Relaxed);
        // Only the stream's own task changes it.
        self.0.store(turns.wrapping_add(turns & 1), Ordering::Relaxed);
    }

    /// The piece it sits on, if it does.
    fn holds(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|turns| turns & 1 == 1)
    }
}

/// A stream that ends when its reader does not read for so long.
pub(super) async fn patiently(stream: impl Future<Output = ()>, patience: Duration) {
    let reader = Arc::new(Reader::default());
    let mut stream = std::pin::pin!(READER.scope(Arc::clone(&reader), stream));
    let mut stalled: Option<(u32, Pin<Box<Sleep>>)> = None;
    std::future::poll_fn(|cx| {
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let Some(piece) = reader.holds() else {
            stalled = None;
            return Poll::Pending;
        };
        if stalled.as_ref().is_none_or(|(since, _)| *since != piece) {
            stalled = Some((piece, Box::pin(tokio::time::sleep(patience))));
        }
        stalled.as_mut().map_or(Poll::Pending, |(_, sleep)| sleep.as_mut().poll(cx))
    })
    .await;
}

/// The body of an answer to the stream that is being driven, in pieces. What is no more than one is left as it is: it
/// costs little, however long nobody reads it.
pub(super) fn in_pieces(body: Body) -> Body {
    if body.size_hint().upper().is_some_and(|most| most <= PIECE as u64) {
        return body;
    }
    let Ok(reader) = READER.try_with(Arc::clone) else { return body };
    reader.was_given();
    Body::new(Pieces { body, rest: Bytes::new(), reader })
}

struct Pieces {
    body: Body,
    /// What is left of the last piece of the body.
    rest: Bytes,
    reader: Arc<Reader>,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.reader.asks();
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        self.reader.was_given();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
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
