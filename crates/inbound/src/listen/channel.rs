//! One connection as HTTP reads and writes it, with TLS or without, and the bytes that were read to find its version.
//!
//! One type for both, so that HTTP is compiled once.

use std::{
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Sleep,
};
use tokio_rustls::server::TlsStream;

use super::{
    connection_io::{ConnectionIo, Progress},
    frame_count::FrameCount,
};

/// A connection whose TLS handshake, if there is one, has succeeded.
pub(super) enum Transport {
    Plain(ConnectionIo<TcpStream>),
    Tls(Box<TlsStream<ConnectionIo<TcpStream>>>),
}

pub(super) struct Channel {
    transport: Transport,
    /// Read from the transport before; delivered first.
    prefix: Bytes,
    progress: Arc<Progress>,
    /// Of HTTP/2.
    frames: Option<Frames>,
}

/// The frames that arrive, and how long one may take.
struct Frames {
    count: FrameCount,
    timeout: Duration,
    waiting: Option<WaitingForFrame>,
}

struct WaitingForFrame {
    number: u64,
    timeout: Pin<Box<Sleep>>,
}

impl Frames {
    /// Ready when the rest of a frame has not arrived in time. The time begins when nothing more can be read: what the server
    /// has not read yet is no fault of the client.
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let unfinished = self.count.unfinished();
        let _ = self.waiting.take_if(|waiting| Some(waiting.number) != unfinished);
        let Some(number) = unfinished else { return Poll::Pending };
        let timeout = self.timeout;
        let waiting = self.waiting.get_or_insert_with(|| WaitingForFrame {
            number,
            timeout: Box::pin(tokio::time::sleep(timeout)),
        });
        waiting.timeout.as_mut().poll(cx)
    }
}

impl Channel {
    pub(super) fn new(transport: Transport, prefix: Bytes, progress: Arc<Progress>) -> Self {
        Self { transport, prefix, progress, frames: None }
    }

    /// Ends with an error when there are too many frames of HTTP/2 that have no use, or when one takes longer than this.
    pub(super) fn counting_frames(self, timeout: Duration) -> Self {
        let count = FrameCount::new();
        Self { frames: Some(Frames { count, timeout, waiting: None }), ..self }
    }

    fn poll_read_bytes(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.prefix.is_empty() {
            return Pin::new(&mut self.transport).poll_read(cx, buf);
        }
        let length = self.prefix.len().min(buf.remaining());
        buf.put_slice(&self.prefix[..length]);
        self.prefix.advance(length);
        self.progress.head_begun.store(true, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_read(cx, buf),
            Self::Tls(io) => Pin::new(io).poll_read(cx, buf),
        }
    }
}

impl AsyncRead for Channel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = self.poll_read_bytes(cx, buf)?;
        let Some(frames) = &mut self.frames else { return read.map(Ok) };
        if read.is_pending() {
            return frames.poll_waiting(cx).map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        let counted = frames.count.read(&buf.filled()[before..]);
        Poll::Ready(counted.map_err(|_| io::Error::other("too many control frames")))
    }
}

impl AsyncWrite for Channel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            Transport::Plain(io) => Pin::new(io).poll_write(cx, buf),
            Transport::Tls(io) => Pin::new(io).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            Transport::Plain(io) => Pin::new(io).poll_write_vectored(cx, bufs),
            Transport::Tls(io) => Pin::new(io).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(io) => io.is_write_vectored(),
            Transport::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(io) => Pin::new(io).poll_flush(cx),
            Transport::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Transport::Tls(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}
