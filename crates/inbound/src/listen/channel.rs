//! One connection as HTTP reads and writes it, with TLS or without, and the bytes that were read to find its version.
//!
//! One type for both, so that HTTP is compiled once.

use std::{
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
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
    frames: Option<FrameCount>,
}

impl Channel {
    pub(super) fn new(transport: Transport, prefix: Bytes, progress: Arc<Progress>) -> Self {
        Self { transport, prefix, progress, frames: None }
    }

    /// Ends with an error when there are too many frames of HTTP/2 that have no use.
    pub(super) fn counting_frames(self) -> Self {
        Self { frames: Some(FrameCount::new()), ..self }
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
        ready!(self.poll_read_bytes(cx, buf))?;
        match &mut self.frames {
            Some(frames) => Poll::Ready(
                frames.read(&buf.filled()[before..]).map_err(|_| io::Error::other("too many control frames")),
            ),
            None => Poll::Ready(Ok(())),
        }
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
