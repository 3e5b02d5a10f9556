//! The event stream of one call.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use http_body::Body as _;
use protocol::{Dialect, Event};

use crate::{
    Error, envelope, history,
    sse::{Frame, Reader, TooLarge},
    transport::{Body, Response},
};

/// The events of one call. Dropping it ends the call; the task continues.
///
/// It implements [`Stream`], so the adapters of the futures crates work on it; [`EventStream::next`] needs
/// none of them. The stream ends after the first error: nothing follows it but `None`. There is no timeout
/// between events.
///
/// ```no_run
/// # use a2ad_client::{Client, Error};
/// # use protocol::Event;
/// use futures_util::TryStreamExt as _;
///
/// # async fn example(client: Client) -> Result<(), Error> {
/// let events: Vec<Event> = client.stream("write a report").await?.try_collect().await?;
/// # Ok(())
/// # }
/// ```
pub struct EventStream {
    /// `None` after the end or an error.
    body: Option<Body>,
    dialect: Dialect,
    reader: Reader,
    deduplicates: bool,
    /// The requested history length of task snapshots.
    history: Option<u32>,
    last_event_id: Option<u64>,
}

impl EventStream {
    pub(crate) fn new(
        response: Response,
        dialect: Dialect,
        max_event_bytes: usize,
        history: Option<u32>,
    ) -> Self {
        // a2ad servers send this header, and they deduplicate a message that is sent twice.
        let deduplicates = response.headers().contains_key("a2ad-dialect");
        let reader = Reader::new(max_event_bytes);
        let body = Some(response.into_body());
        Self { body, dialect, reader, deduplicates, history, last_event_id: None }
    }

    /// The next event; `None` at the end and after an error.
    ///
    /// The same as `StreamExt::next` of the futures crates. Cancel safe: no event is lost when the future is
    /// dropped before it is ready.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        poll_fn(|context| self.poll_event(context)).await
    }

    /// The sequence number (`id:`) of the event returned last; `None` if the agent did not number it.
    ///
    /// [`Client::resume`](crate::Client::resume) requests the events after it.
    pub fn last_event_id(&self) -> Option<u64> {
        self.last_event_id
    }

    /// How long the agent asks to wait before subscribing again. Agents send this before they end a stream
    /// whose task continues.
    pub fn retry(&self) -> Option<Duration> {
        self.reader.retry()
    }

    /// Whether the agent deduplicates a message that is sent twice.
    pub(crate) fn deduplicates(&self) -> bool {
        self.deduplicates
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        let next = ready!(self.poll_read(context));
        if !matches!(next, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(next)
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        loop {
            match self.reader.next_frame() {
                Err(TooLarge(limit_bytes)) => {
                    return Poll::Ready(Some(Err(Error::TooLarge { limit_bytes })));
                }
                Ok(Some(frame)) => match frame.data.as_deref() {
                    // The meaning of a frame is in its data.
                    None | Some([]) => continue,
                    Some(data) => return Poll::Ready(Some(self.decode(&frame, data))),
                },
                Ok(None) => {}
            }
            match ready!(Pin::new(&mut *body).poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                // Trailers have no data.
                Some(Ok(frame)) => frame.into_data().map_or((), |chunk| self.reader.feed(chunk)),
            }
        }
    }

    fn decode(&mut self, frame: &Frame, data: &[u8]) -> Result<Event, Error> {
        let dialect = self.dialect;
        if frame.event.as_deref() == Some("error") {
            return Err(envelope::decode_error_event(data, dialect));
        }
        let event = envelope::decode(data, dialect, |node| dialect.decode_event(node))?;
        self.last_event_id = frame.seq();
        Ok(history::of_event(event, self.history))
    }
}

/// Cancel safe like [`EventStream::next`].
impl Stream for EventStream {
    type Item = Result<Event, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_event(context)
    }
}
