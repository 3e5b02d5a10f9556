//! The bytes of one connection, with what a peer may not do to it.
//!
//! - A peer that reads too slowly is cut off: while a write is blocked, at least [`Rate::bytes`] have to leave in each
//!   [`Rate::window`]. A connection with nothing to write is never blocked, so idle event streams are exempt.
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

use bytes::{Buf as _, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep},
};

use crate::body;

/// The most that is discarded of a refused body.
const MAX_DISCARDED: u64 = 256 << 20;

/// A transport that can be ended without sending what is still buffered.
pub(super) trait Reset {
    /// Resets the connection when it is dropped: a peer that does not read would keep the kernel's buffers for minutes.
    fn reset_on_drop(&self);
}

impl Reset for TcpStream {
    fn reset_on_drop(&self) {
        if let Err(error) = self.set_zero_linger() {
            tracing::debug!(%error, "a slow connection is closed without a reset");
        }
    }
}

/// The least progress that blocked writes have to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) bytes: u64,
    pub(super) window: Duration,
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
    /// Read from the stream before; delivered first.
    prefix: Bytes,
    progress: Arc<Progress>,
    rate: Rate,
    /// There while a write is blocked.
    blocked: Option<Blocked>,
    closing: Option<Lingering>,
}

struct Blocked {
    window: Pin<Box<Sleep>>,
    /// What has left since the window began.
    written: u64,
}

struct Lingering {
    timeout: Pin<Box<Sleep>>,
    since: Instant,
    discarded: u64,
}

impl<S> ConnectionIo<S> {
    pub(super) fn new(stream: S, prefix: Bytes, progress: Arc<Progress>, rate: Rate) -> Self {
        Self { stream, prefix, progress, rate, blocked: None, closing: None }
    }
}

impl<S: Reset> ConnectionIo<S> {
    /// Passes a write on, or fails it when blocked writes have made too little progress.
    fn paced(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                self.blocked = self.blocked.take().and_then(|mut blocked| {
                    blocked.written += bytes as u64;
                    (blocked.written < self.rate.bytes).then_some(blocked)
                });
                written
            }
            Poll::Ready(Err(_)) => written,
            Poll::Pending => {
                let window = self.rate.window;
                let blocked = self.blocked.get_or_insert_with(|| Blocked {
                    window: Box::pin(tokio::time::sleep(window)),
                    written: 0,
                });
                ready!(blocked.window.as_mut().poll(cx));
                self.stream.reset_on_drop();
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> ConnectionIo<S> {
    /// Discards what arrives until the peer closes, is too slow, or has sent too much.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { stream, closing, .. } = self;
        let lingering = closing.get_or_insert_with(|| {
            let since = Instant::now();
            Lingering {
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
        if self.prefix.is_empty() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
            if buf.filled().len() == before {
                return Poll::Ready(Ok(()));
            }
        } else {
            let length = self.prefix.len().min(buf.remaining());
            buf.put_slice(&self.prefix[..length]);
            self.prefix.advance(length);
        }
        self.progress.head_begun.store(true, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Reset + Unpin> AsyncWrite for ConnectionIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.paced(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.paced(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Everything has been written when a flush is asked for: whatever blocked is over.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.blocked = None;
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

    impl Reset for DuplexStream {
        fn reset_on_drop(&self) {}
    }

    fn io(buffer: usize, rate: Rate) -> (ConnectionIo<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(buffer);
        (ConnectionIo::new(ours, Bytes::new(), Arc::default(), rate), theirs)
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
