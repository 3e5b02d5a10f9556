//! A stream that buffers its writes until its owner has been polled.
//!
//! HTTP/2 writes a response in pieces: head, message and trailers may each be a write of their own. Buffered until the
//! connection has nothing more to write, they become one. The buffer is bounded; more than that is sent at once.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is held.
const MOST: usize = 32 << 10;
/// How much memory is kept for the next turn.
const KEPT: usize = 4 << 10;

/// The stream; every clone is the same one, and all of them belong to one task.
pub(super) struct CorkedStream<S>(Arc<Mutex<Inner<S>>>);

struct Inner<S> {
    stream: S,
    held: Vec<u8>,
    /// How much of that has left.
    sent: usize,
}

impl<S> Clone for CorkedStream<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: AsyncWrite + Unpin> CorkedStream<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(Inner { stream, held: Vec::new(), sent: 0 })))
    }

    /// Sends what is held.
    pub(super) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lock().poll_send(cx)
    }
}

impl<S> CorkedStream<S> {
    fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncWrite + Unpin> Inner<S> {
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.held.len() {
            let left = &self.held[self.sent..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.sent += sent,
            }
        }
        self.sent = 0;
        self.held.clear();
        self.held.shrink_to(KEPT);
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Makes space for `length` more bytes; false if that is more than the buffer holds.
    fn poll_room(&mut self, cx: &mut Context<'_>, length: usize) -> Poll<io::Result<bool>> {
        if self.held.len() + length > MOST {
            ready!(self.poll_send(cx))?;
        }
        Poll::Ready(Ok(length <= MOST))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CorkedStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CorkedStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.lock();
        if !ready!(inner.poll_room(cx, buf.len()))? {
            return Pin::new(&mut inner.stream).poll_write(cx, buf);
        }
        inner.held.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = bufs.iter().map(|buf| buf.len()).sum();
        let mut inner = self.lock();
        if !ready!(inner.poll_room(cx, length))? {
            return Pin::new(&mut inner.stream).poll_write_vectored(cx, bufs);
        }
        for buf in bufs {
            inner.held.extend_from_slice(buf);
        }
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().stream.is_write_vectored()
    }

    /// What is held is sent by the owner of the stream, at the end of its turn.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.lock();
        ready!(inner.poll_send(cx))?;
        Pin::new(&mut inner.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// What the other end has got so far.
    async fn got(other: &mut tokio::io::DuplexStream) -> Vec<u8> {
        let mut buf = vec![0; 1 << 20];
        let read = tokio::select! {
            biased;
            read = other.read(&mut buf) => read.unwrap(),
            () = tokio::task::yield_now() => 0,
        };
        buf.truncate(read);
        buf
    }

    #[tokio::test]
    async fn writes_leave_together_when_they_are_sent() {
        let (one, mut other) = tokio::io::duplex(1 << 20);
        let mut corked = CorkedStream::new(one);
        for word in ["head ", "message ", "trailers"] {
            corked.write_all(word.as_bytes()).await.unwrap();
            corked.flush().await.unwrap();
        }
        assert_eq!(got(&mut other).await, b"");
        std::future::poll_fn(|cx| corked.poll_send(cx)).await.unwrap();
        assert_eq!(got(&mut other).await, b"head message trailers");
    }

    #[tokio::test]
    async fn what_is_too_much_to_hold_leaves_at_once_and_in_order() {
        let (one, mut other) = tokio::io::duplex(1 << 20);
        let mut corked = CorkedStream::new(one);
        corked.write_all(b"first").await.unwrap();
        let large = vec![b'x'; MOST + 1];
        corked.write_all(&large).await.unwrap();
        assert_eq!(got(&mut other).await, [&b"first"[..], &large].concat());
        corked.write_all(b"last").await.unwrap();
        corked.shutdown().await.unwrap();
        assert_eq!(got(&mut other).await, b"last");
    }
}
