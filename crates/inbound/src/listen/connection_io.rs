//! The bytes of one connection, with what a peer may not do to it.
//!
//! This is below TLS, where there is some: rustls accepts bytes that have not left, so a write above it says nothing about the
//! peer.
//!
//! - A peer that reads too slowly is disconnected: while writes are blocked, at least [`Rate::bytes`] have to leave in
//!   each [`Rate::window`]. A connection with nothing to write is never blocked, so idle event streams are exempt.
//!   Kernels move bytes in steps: the sender's reports a socket as writable only when a third of its buffer is free, and
//!   the receiver's opens its window only by a share of its own. So a blocked write is tried again several times per
//!   window, and bytes that left early earn time for a later pause ([`Allowance`]).
//! - Closing lingers while the peer still sends a body that was refused: closed at once, the kernel would answer the
//!   rest of the body with a reset, and the peer would lose the response. What arrives is discarded, as long as it
//!   arrives at the rate that is asked of every body.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep},
};

use crate::request::body;

/// The most that is discarded of a refused body.
pub(super) const MAX_DISCARDED: u64 = 256 << 20;

/// How often a blocked write is tried in a window.
const TRIES_PER_WINDOW: u32 = 6;
/// How many windows a peer can earn in advance.
const MAX_CREDIT_WINDOWS: u32 = 2;

/// A transport that can be ended without sending what is still buffered.
pub(super) trait Transport {
    /// Resets the connection when it is dropped: a peer that does not read would keep the kernel's buffers for minutes.
    fn reset_on_drop(&self);

    /// Writes what fits into the kernel's buffer now, also where too little is free for it to be reported as writable.
    fn write_now(&self, bytes: &[u8]) -> io::Result<usize>;
}

impl Transport for TcpStream {
    fn reset_on_drop(&self) {
        if let Err(error) = self.set_zero_linger() {
            tracing::debug!(%error, "a slow connection is closed without a reset");
        }
    }

    fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        // tokio waits for the kernel's report, so this asks the socket itself, which does not block.
        Ok(rustix::io::write(self, bytes)?)
    }
}

/// The least progress that blocked writes have to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) bytes: u64,
    pub(super) window: Duration,
}

/// How long a peer may take for the next bytes: a window, and the time it has earned by reading faster before.
#[derive(Debug)]
pub(super) struct Allowance {
    rate: Rate,
    credit: Duration,
}

impl Allowance {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, credit: Duration::ZERO }
    }

    /// How long the next [`Rate::bytes`] may take.
    pub(super) fn timeout(&self) -> Duration {
        self.rate.window + self.credit
    }

    /// Counts bytes that have left after this time.
    pub(super) fn record(&mut self, bytes: u64, waited: Duration) {
        let max = self.rate.window * MAX_CREDIT_WINDOWS;
        if waited.is_zero() && self.credit == max {
            return;
        }
        let micros = u64::try_from(self.rate.window.as_micros()).unwrap_or(u64::MAX);
        let earned = Duration::from_micros(micros.saturating_mul(bytes) / self.rate.bytes);
        self.credit = (self.credit + earned).saturating_sub(waited).min(max);
    }
}

/// What the transport, the header timer and the service of an HTTP/1.1 connection know of each other.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Whether bytes have arrived since the connection began to wait for the head of a request.
    pub(super) head_begun: AtomicBool,
    /// Whether the body of the current request has not been read to its end.
    pub(super) body_unread: AtomicBool,
}

pub(super) struct ConnectionIo<S> {
    stream: S,
    progress: Arc<Progress>,
    rate: Rate,
    allowance: Allowance,
    /// There while a write is blocked.
    blocked: Option<BlockedWrite>,
    closing: Option<LingerState>,
}

struct BlockedWrite {
    since: Instant,
    /// When the connection is ended, unless enough has left.
    deadline: Instant,
    /// When the write is tried again.
    next_try: Pin<Box<Sleep>>,
    /// What has left since then.
    written: u64,
}

struct LingerState {
    timeout: Pin<Box<Sleep>>,
    since: Instant,
    discarded: u64,
}

impl<S> ConnectionIo<S> {
    pub(super) fn new(stream: S, progress: Arc<Progress>, rate: Rate) -> Self {
        let allowance = Allowance::new(rate);
        Self { stream, progress, rate, allowance, blocked: None, closing: None }
    }
}

impl<S: Transport> ConnectionIo<S> {
    /// Passes a write on, or fails it when blocked writes have made too little progress.
    fn paced(
        &mut self,
        written: Poll<io::Result<usize>>,
        bytes: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let written = match written {
            Poll::Pending => ready!(self.poll_blocked(bytes, cx)),
            Poll::Ready(written) => written,
        };
        if let Ok(bytes) = written {
            self.record(bytes as u64);
        }
        Poll::Ready(written)
    }

    fn record(&mut self, bytes: u64) {
        match &mut self.blocked {
            None => self.allowance.record(bytes, Duration::ZERO),
            Some(blocked) => {
                blocked.written += bytes;
                if blocked.written >= self.rate.bytes {
                    self.unblock();
                }
            }
        }
    }

    fn unblock(&mut self) {
        if let Some(BlockedWrite { since, written, .. }) = self.blocked.take() {
            self.allowance.record(written, since.elapsed());
        }
    }

    /// Tries a blocked write again now and then, and fails it at its deadline.
    fn poll_blocked(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let interval = self.rate.window / TRIES_PER_WINDOW;
        let blocked = self.blocked.get_or_insert_with(|| {
            let since = Instant::now();
            BlockedWrite {
                since,
                deadline: since + self.allowance.timeout(),
                next_try: Box::pin(tokio::time::sleep(interval)),
                written: 0,
            }
        });
        loop {
            ready!(blocked.next_try.as_mut().poll(cx));
            match self.stream.write_now(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
            let now = Instant::now();
            if now >= blocked.deadline {
                self.stream.reset_on_drop();
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            blocked.next_try.as_mut().reset(blocked.deadline.min(now + interval));
        }
    }
}

impl<S: AsyncRead + Unpin> ConnectionIo<S> {
    /// Discards what arrives until the peer closes, is too slow, or has sent too much.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { stream, closing, .. } = self;
        let lingering = closing.get_or_insert_with(|| {
            let since = Instant::now();
            LingerState {
                timeout: Box::pin(tokio::time::sleep_until(body::due(since, 0))),
                since,
                discarded: 0,
            }
        });
        let mut scratch = [0; 16 << 10];
        loop {
            let mut buf = ReadBuf::new(&mut scratch);
            match Pin::new(&mut *stream).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    lingering.discarded += buf.filled().len() as u64;
                    lingering.timeout.as_mut().reset(body::due(lingering.since, lingering.discarded));
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return lingering.timeout.as_mut().poll(cx),
            }
            if lingering.discarded > MAX_DISCARDED {
                return Poll::Ready(());
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ConnectionIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.progress.head_begun.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Transport + Unpin> AsyncWrite for ConnectionIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.paced(written, buf, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| &buf[..]);
        self.paced(written, first, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Everything has been written when a flush is asked for: whatever blocked is over.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.unblock();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if !self.progress.body_unread.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_discard(cx).map(Ok)
    }
}

/// The body of a request, which notes when it has been read to its end.
pub(super) struct NotedBody<B> {
    body: B,
    progress: Arc<Progress>,
}

impl<B: hyper::body::Body> NotedBody<B> {
    pub(super) fn new(body: B, progress: &Arc<Progress>) -> Self {
        progress.body_unread.store(!body.is_end_stream(), Ordering::Relaxed);
        Self { body, progress: Arc::clone(progress) }
    }
}

impl<B: hyper::body::Body + Unpin> hyper::body::Body for NotedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<B::Data>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.progress.body_unread.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    impl Transport for DuplexStream {
        fn reset_on_drop(&self) {}

        fn write_now(&self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    fn io(buffer: usize, rate: Rate) -> (ConnectionIo<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(buffer);
        (ConnectionIo::new(ours, Arc::default(), rate), theirs)
    }

    const RATE: Rate = Rate { bytes: 7_680, window: Duration::from_secs(30) };

    /// Reads so many bytes each second until the other end fails.
    async fn read_slowly(mut from: DuplexStream, bytes: usize) {
        let mut buffer = vec![0; bytes];
        while from.read_exact(&mut buffer).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_below_the_rate_is_cut_off_and_one_above_it_is_not() {
        let body = vec![0; 100 << 10];
        for (bytes, expected) in [(1, Err(io::ErrorKind::TimedOut)), (300, Ok(()))] {
            let (mut ours, theirs) = io(1 << 10, RATE);
            let written = async {
                let written = ours.write_all(&body).await.map_err(|error| error.kind());
                drop(ours);
                written
            };
            let (written, ()) = tokio::join!(written, read_slowly(theirs, bytes));
            assert_eq!(written, expected, "{bytes} bytes a second");
        }
    }

    #[test]
    fn faster_reading_earns_time_for_a_pause() {
        let seconds = Duration::from_secs;
        let mut allowance = Allowance::new(RATE);
        assert_eq!(allowance.timeout(), seconds(30));
        allowance.record(2_560, Duration::ZERO);
        assert_eq!(allowance.timeout(), seconds(40));
        allowance.record(1 << 30, Duration::ZERO);
        assert_eq!(allowance.timeout(), seconds(90));
        allowance.record(7_680, seconds(50));
        assert_eq!(allowance.timeout(), seconds(70));
        allowance.record(7_680, seconds(300));
        assert_eq!(allowance.timeout(), seconds(30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_has_nothing_to_write_is_not_slow() {
        let (mut ours, mut theirs) = io(8, RATE);
        for _ in 0..3 {
            let read = async {
                tokio::time::sleep(Duration::from_secs(29)).await;
                theirs.read_exact(&mut [0; 9]).await.unwrap();
            };
            let write = async {
                ours.write_all(b"nine byte").await.unwrap();
                ours.flush().await.unwrap();
            };
            tokio::join!(write, read);
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    }
}
