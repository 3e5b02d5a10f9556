//! The streams of one HTTP/2 connection, driven by the connection's own task.
//!
//! A task for each stream would cost every call two hand-overs between tasks, often between threads, and the connection
//! would send the head of a response while its body is still being produced. Here everything the streams produce in one
//! poll is sent in one write. The price is that one connection cannot use several processors at once: it is for calls
//! that wait; computation belongs to the engine's own tasks.
//!
//! Many clients make one call at a time on a connection. The only stream of a connection is polled directly; a set that
//! polls just the streams that were woken is used from the second one on. The rest of a body that was refused is read by a
//! stream of its own ([`super::refused_body`]).

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use hyper::rt::Executor;
use tokio::{io::AsyncWrite, time::Instant};

use super::{
    corked::CorkedStream,
    slow_readers::{Calls, GuardedStream, StreamEnd, UnsentBytes, Watchdog},
};

/// How a connection ended.
type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Takes the streams a connection begins.
#[derive(Clone)]
pub(super) struct StreamCollector {
    streams: Arc<Mutex<Vec<GuardedStream>>>,
    /// How long a peer may read nothing of a response.
    window: Duration,
}

impl StreamCollector {
    pub(super) fn new(window: Duration) -> Self {
        Self { streams: Arc::default(), window }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<GuardedStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamCollector {
    fn execute(&self, stream: F) {
        self.lock().push(GuardedStream::new(stream, self.window));
    }
}

/// The streams in progress, and the transport their output is written to.
pub(super) struct Streams<S> {
    begun: StreamCollector,
    /// The only stream in progress.
    single: Option<GuardedStream>,
    /// The streams in progress, where there are several.
    running: FuturesUnordered<GuardedStream>,
    io: CorkedStream<S>,
    watchdog: Watchdog,
    /// Since when the peer has not read the response of the call that was reset last.
    unread: Option<Instant>,
    /// When a call has finished last.
    finished: Option<Instant>,
}

impl<S: AsyncWrite + Unpin> Streams<S> {
    /// Those that `begun` takes, of a connection over `io` that holds what is `unsent`, and without a call in progress for no
    /// longer than `idle`.
    pub(super) fn new(
        begun: StreamCollector,
        io: CorkedStream<S>,
        unsent: Arc<UnsentBytes>,
        idle: Duration,
    ) -> Self {
        let watchdog = Watchdog::new(unsent, begun.window, idle);
        let running = FuturesUnordered::new();
        Self { begun, single: None, running, io, watchdog, unread: None, finished: None }
    }

    /// Drives a connection and its streams until it ends.
    pub(super) async fn drive<C>(&mut self, mut connection: Pin<&mut C>) -> Ended
    where
        C: Future<Output = hyper::Result<()>>,
    {
        std::future::poll_fn(|cx| self.poll(connection.as_mut(), cx)).await
    }

    fn poll<C>(&mut self, mut connection: Pin<&mut C>, cx: &mut Context<'_>) -> Poll<Ended>
    where
        C: Future<Output = hyper::Result<()>>,
    {
        self.advance(cx);
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                // Send the final bytes if that is possible without waiting.
                let _ = self.io.poll_send(cx);
                return Poll::Ready(ended.map_err(Into::into));
            }
            if !self.advance_begun(cx) {
                break;
            }
        }
        if let Poll::Ready(Err(error)) = self.io.poll_send(cx) {
            return Poll::Ready(Err(error.into()));
        }
        // What cannot be sent yet wakes the connection when it can.
        let too_slow = self.watchdog.poll(cx, self.calls());
        if self.reads_nothing() || too_slow.is_ready() {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut).into()));
        }
        Poll::Pending
    }

    fn calls(&self) -> Calls {
        if self.single.is_none() && self.running.is_empty() { Calls::None } else { Calls::InProgress }
    }

    /// Polls the streams; returns whether one of them has ended. A stream that has produced output and is still pending
    /// wakes the connection itself.
    fn advance(&mut self, cx: &mut Context<'_>) -> bool {
        let mut ended = false;
        if let Some(single) = &mut self.single
            && let Poll::Ready(end) = single.poll_unpin(cx)
        {
            self.single = None;
            self.end(end);
            ended = true;
        }
        while let Poll::Ready(Some(end)) = self.running.poll_next_unpin(cx) {
            self.end(end);
            ended = true;
        }
        ended
    }

    fn end(&mut self, end: StreamEnd) {
        match end {
            StreamEnd::Finished => self.finished = Some(Instant::now()),
            StreamEnd::Unread(since) => self.unread = Some(since),
        }
    }

    /// Whether the last call was reset because it was not read, and no other has finished meanwhile.
    fn reads_nothing(&self) -> bool {
        self.calls() == Calls::None
            && self.unread.is_some_and(|since| self.finished.is_none_or(|finished| finished < since))
    }

    /// Polls the streams that have begun since the last poll, and those that they begin; returns whether a stream has
    /// ended.
    fn advance_begun(&mut self, cx: &mut Context<'_>) -> bool {
        let mut ended = false;
        while self.take_begun() {
            ended |= self.advance(cx);
        }
        ended
    }

    fn take_begun(&mut self) -> bool {
        let mut begun = self.begun.lock();
        let any = !begun.is_empty();
        if begun.len() == 1 && self.single.is_none() && self.running.is_empty() {
            self.single = begun.pop();
        } else if any {
            self.running.extend(self.single.take());
            self.running.extend(begun.drain(..));
        }
        any
    }
}

impl<S> Drop for Streams<S> {
    fn drop(&mut self) {
        // A stream knows who takes streams: one that was begun in the connection's last turn would hold itself for ever.
        let begun = std::mem::take(&mut *self.begun.lock());
        drop(begun);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn streams(begun: &StreamCollector) -> Streams<tokio::io::Sink> {
        Streams::new(begun.clone(), CorkedStream::new(tokio::io::sink()), Arc::default(), Duration::MAX)
    }

    #[tokio::test]
    async fn a_stream_that_panics_is_no_other_streams_business() {
        let begun = StreamCollector::new(Duration::MAX);
        let mut streams = streams(&begun);
        begun.execute(async { panic!("panic of the test") });
        let done = Arc::new(AtomicBool::new(false));
        let doing = Arc::clone(&done);
        begun.execute(async move {
            tokio::task::yield_now().await;
            doing.store(true, Ordering::Relaxed);
        });
        let mut connection = std::pin::pin!(std::future::poll_fn(|_| {
            if done.load(Ordering::Relaxed) { Poll::Ready(Ok(())) } else { Poll::Pending }
        }));
        streams.drive(connection.as_mut()).await.unwrap();
    }

    #[tokio::test]
    async fn a_stream_that_is_begun_last_does_not_outlive_its_connection() {
        let begun = StreamCollector::new(Duration::MAX);
        let mut streams = streams(&begun);
        let (known, alive) = (begun.clone(), Arc::new(()));
        let held = Arc::clone(&alive);
        let mut connection = std::pin::pin!(std::future::poll_fn(|_| {
            let (known, held) = (known.clone(), Arc::clone(&held));
            known.clone().execute(async move {
                let _both = (known, held);
                std::future::pending().await
            });
            Poll::Ready(Ok(()))
        }));
        streams.drive(connection.as_mut()).await.unwrap();
        drop(streams);
        assert_eq!(Arc::strong_count(&alive), 2);
    }
}
