//! Slow readers of HTTP/2.
//!
//! Over HTTP/1.1 a peer that stops reading blocks the connection's writes, and [`super::connection_io`] ends it. Over
//! HTTP/2 it opens no window for one stream, reads everything else and answers pings: nothing blocks, and the response
//! would be held for as long as the peer likes. So a response is handed on in pieces, each after the one before it has
//! fitted into the window, and a stream whose peer takes no piece for a whole window of time is reset; pieces that were
//! taken faster earn time for a pause, because clients open the window in steps. The connection continues.
//!
//! A piece that has begun to leave stays in the buffers of hyper until the peer takes the rest of it, reset or not. So
//! a connection that has more than [`MAX_UNSENT`] there and takes less than a piece in a window of time is ended. Without a
//! call in progress, anything that is not taken ends it, after the time an idle connection has.
//!
//! A connection is also ended when its last call is reset and no other call has finished meanwhile: a peer that opens no
//! window at all would otherwise keep it for as long as it answers pings.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::connection_io::{Allowance, Rate};

/// What a peer has to read within a window of time: 256 bytes a second over 30 seconds. hyper holds one piece until a
/// byte of it fits into the window, and asks for the next one then.
const PIECE: usize = 256 * 30;

/// What a connection may hold for a peer that does not read.
const MAX_UNSENT: u64 = 64 << 10;

tokio::task_local! {
    /// How far the peer of the stream that is being polled has read.
    static READING: Arc<ReadState>;
}

/// Odd while the peer has a piece that it may not have read, even when it has asked for more.
#[derive(Default)]
struct ReadState(AtomicU32);

impl ReadState {
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

/// How a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// It has finished or panicked.
    Finished,
    /// Its peer has not read a piece of the response since this time.
    Unread(Instant),
}

/// A stream that ends, and so is reset, when it panics, or when its peer reads no piece for a window of time and the
/// time it has earned.
pub(super) struct GuardedStream {
    stream: BoxFuture<'static, ()>,
    reading: Arc<ReadState>,
    allowance: Allowance,
    unread: Option<UnreadPiece>,
}

impl GuardedStream {
    pub(super) fn new(stream: impl Future<Output = ()> + Send + 'static, window: Duration) -> Self {
        let allowance = Allowance::new(Rate { bytes: PIECE as u64, window });
        Self { stream: Box::pin(stream), reading: Arc::default(), allowance, unread: None }
    }

    /// Polls the stream; a panic ends it.
    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let stream = &mut self.stream;
        let poll = AssertUnwindSafe(|| stream.as_mut().poll(cx));
        READING.sync_scope(Arc::clone(&self.reading), || catch_unwind(poll)).unwrap_or(Poll::Ready(()))
    }

    /// Ready when the peer has not read a piece in time, with the time at which that piece was handed on.
    fn poll_unread(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        let number = self.reading.unread();
        if let Some(earlier) = self.unread.take_if(|unread| Some(unread.number) != number) {
            // Several pieces may have been read since then.
            let pieces = number.unwrap_or(earlier.number.wrapping_add(2)).wrapping_sub(earlier.number) / 2;
            self.allowance.record(u64::from(pieces) * PIECE as u64, earlier.since.elapsed());
        }
        let Some(number) = number else { return Poll::Pending };
        let unread = self.unread.get_or_insert_with(|| UnreadPiece {
            number,
            since: Instant::now(),
            timeout: Box::pin(tokio::time::sleep(self.allowance.timeout())),
        });
        unread.timeout.as_mut().poll(cx).map(|()| unread.since)
    }
}

impl Future for GuardedStream {
    type Output = StreamEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StreamEnd> {
        match self.poll_stream(cx) {
            Poll::Ready(()) => Poll::Ready(StreamEnd::Finished),
            Poll::Pending => self.poll_unread(cx).map(StreamEnd::Unread),
        }
    }
}

/// A piece that the peer has not read yet.
struct UnreadPiece {
    number: u32,
    since: Instant,
    timeout: Pin<Box<Sleep>>,
}

/// The pieces of a connection's responses that have not left yet.
#[derive(Debug, Default)]
pub(super) struct UnsentBytes {
    bytes: AtomicU64,
    /// What has left in all.
    sent: AtomicU64,
}

/// Notices a connection that holds responses which its peer does not read.
pub(super) struct Watchdog {
    unsent: Arc<UnsentBytes>,
    allowance: Allowance,
    /// How long the last pieces may take when no call is in progress.
    idle: Duration,
    /// While too much is held.
    slow: Option<SlowConnection>,
}

struct SlowConnection {
    excess: Excess,
    since: Instant,
    timeout: Pin<Box<Sleep>>,
    /// What had been sent when it began.
    sent: u64,
}

/// Why what a connection holds is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excess {
    /// It is more than [`MAX_UNSENT`].
    Memory,
    /// No call is in progress that could have more to send.
    NoCalls,
}

/// Whether a connection has calls in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    InProgress,
    None,
}

impl Excess {
    fn of(unsent: u64, calls: Calls) -> Option<Self> {
        match calls {
            _ if unsent > MAX_UNSENT => Some(Self::Memory),
            Calls::None if unsent > 0 => Some(Self::NoCalls),
            Calls::None | Calls::InProgress => None,
        }
    }
}

impl Watchdog {
    pub(super) fn new(unsent: Arc<UnsentBytes>, window: Duration, idle: Duration) -> Self {
        let allowance = Allowance::new(Rate { bytes: PIECE as u64, window });
        Self { unsent, allowance, idle, slow: None }
    }

    /// Ready when too little has been sent in a window of time.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, calls: Calls) -> Poll<()> {
        loop {
            let Some(excess) = Excess::of(self.unsent.bytes.load(Ordering::Relaxed), calls) else {
                self.slow = None;
                return Poll::Pending;
            };
            let _ = self.slow.take_if(|slow| slow.excess != excess);
            let timeout = match excess {
                Excess::Memory => self.allowance.timeout(),
                Excess::NoCalls => self.idle,
            };
            let sent = self.unsent.sent.load(Ordering::Relaxed);
            let slow = self.slow.get_or_insert_with(|| SlowConnection {
                excess,
                since: Instant::now(),
                timeout: Box::pin(tokio::time::sleep(timeout)),
                sent,
            });
            let progress = sent - slow.sent;
            if progress < PIECE as u64 {
                return slow.timeout.as_mut().poll(cx);
            }
            self.allowance.record(progress, slow.since.elapsed());
            self.slow = None;
        }
    }
}

/// Bytes that count as unsent until they are dropped.
struct Piece {
    bytes: Bytes,
    unsent: Arc<UnsentBytes>,
}

impl Piece {
    fn count(bytes: Bytes, unsent: &Arc<UnsentBytes>) -> Bytes {
        unsent.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Bytes::from_owner(Self { bytes, unsent: Arc::clone(unsent) })
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let length = self.bytes.len() as u64;
        self.unsent.bytes.fetch_sub(length, Ordering::Relaxed);
        self.unsent.sent.fetch_add(length, Ordering::Relaxed);
    }
}

/// The body of a response, in pieces.
pub(super) struct Pieces {
    body: Body,
    /// What is left of the last frame of the body.
    rest: Bytes,
    reading: Arc<ReadState>,
    unsent: Arc<UnsentBytes>,
}

impl Pieces {
    /// The body of a response to the stream that is being polled.
    pub(super) fn new(body: Body, unsent: &Arc<UnsentBytes>) -> Self {
        let reading = READING.try_with(Arc::clone).unwrap_or_default();
        if !body.is_end_stream() {
            reading.hand_on();
        }
        Self { body, rest: Bytes::new(), reading, unsent: Arc::clone(unsent) }
    }
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
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        self.reading.hand_on();
        Poll::Ready(Some(Ok(Frame::data(Piece::count(piece, &self.unsent)))))
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
