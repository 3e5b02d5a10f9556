//! The event stream of one call.

use std::time::Duration;

use protocol::{Dialect, Event};
use reqwest::Response;

use crate::{
    Error, envelope, history,
    sse::{Reader, TooLarge},
};

/// The events of one call. Dropping it ends the call; the task continues.
pub struct EventStream {
    /// `None` after the end or an error.
    response: Option<Response>,
    dialect: Dialect,
    reader: Reader,
    max_event_bytes: usize,
    deduplicates: bool,
    /// The requested history length of task snapshots.
    history: Option<u32>,
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
        Self { response: Some(response), dialect, reader, max_event_bytes, deduplicates, history }
    }

    /// The next event and its sequence number, if the agent numbers events; `None` at the end.
    ///
    /// Nothing follows an error. Cancel safe: no event is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<(Option<u64>, Event)>, Error> {
        let next = self.read().await;
        if !matches!(next, Ok(Some(_))) {
            self.response = None;
        }
        next
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

    async fn read(&mut self) -> Result<Option<(Option<u64>, Event)>, Error> {
        let Some(response) = &mut self.response else { return Ok(None) };
        loop {
            let frame = self.reader.next();
            if let Some(frame) =
                frame.map_err(|TooLarge| Error::TooLarge { limit_bytes: self.max_event_bytes })?
            {
                let dialect = self.dialect;
                if frame.is_error {
                    return Err(envelope::decode_error_event(&frame.data, dialect));
                }
                let event = envelope::decode(&frame.data, dialect, |node| dialect.decode_event(node))?;
                return Ok(Some((frame.seq, history::of_event(event, self.history))));
            }
            match response.chunk().await.map_err(Error::transport)? {
                None => return Ok(None),
                Some(chunk) => self.reader.feed(chunk),
            }
        }
    }
}
