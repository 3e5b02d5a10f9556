//! A task's events as they come.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use protocol::{Event, dialect::v1};

use crate::{
    Error, envelope,
    sse::{Reader, TooLarge},
};

/// The events of one call. Dropping it ends the call; the task goes on.
pub struct EventStream {
    /// Gone after the end or an error: nothing follows either.
    body: Option<Incoming>,
    reader: Reader,
    max_event_bytes: usize,
}

impl EventStream {
    pub(crate) fn new(body: Incoming, max_event_bytes: usize) -> Self {
        Self { body: Some(body), reader: Reader::new(max_event_bytes), max_event_bytes }
    }

    /// The next event and its number in the task's log, where the agent numbers them; `None` at the end.
    ///
    /// An error is the last thing a stream says. Cancel safe: no event is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<(Option<u64>, Event)>, Error> {
        let next = self.read().await;
        if !matches!(next, Ok(Some(_))) {
            self.body = None;
        }
        next
    }

    /// How long the agent asks to stay away before subscribing again. Agents say so before they end a stream
    /// whose task goes on.
    pub fn retry(&self) -> Option<Duration> {
        self.reader.retry()
    }

    async fn read(&mut self) -> Result<Option<(Option<u64>, Event)>, Error> {
        let Some(body) = &mut self.body else { return Ok(None) };
        loop {
            let frame = self.reader.next();
            if let Some(frame) =
                frame.map_err(|TooLarge| Error::TooLarge { limit_bytes: self.max_event_bytes })?
            {
                return Ok(Some((frame.seq, envelope::decode(&frame.data, v1::event::decode)?)));
            }
            match body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(Error::transport(error)),
                Some(Ok(piece)) => {
                    if let Ok(piece) = piece.into_data() {
                        self.reader.feed(piece);
                    }
                }
            }
        }
    }
}
