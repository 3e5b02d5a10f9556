//! A task's events as they come.

use std::time::Duration;

use protocol::{Dialect, Event};
use reqwest::Response;

use crate::{
    Error, envelope, history,
    sse::{Reader, TooLarge},
};

/// The events of one call. Dropping it ends the call; the task goes on.
pub struct EventStream {
    /// Gone after the end or an error: nothing follows either.
    response: Option<Response>,
    dialect: Dialect,
    reader: Reader,
    max_event_bytes: usize,
    replays: bool,
    /// How many messages of history a task that is shown may have.
    history: Option<u32>,
}

impl EventStream {
    pub(crate) fn new(
        response: Response,
        dialect: Dialect,
        max_event_bytes: usize,
        history: Option<u32>,
    ) -> Self {
        // Agents of this house say what they speak, and recognise a message they are sent twice.
        let replays = response.headers().contains_key("a2ad-dialect");
        let reader = Reader::new(max_event_bytes);
        Self { response: Some(response), dialect, reader, max_event_bytes, replays, history }
    }

    /// The next event and its number in the task's log, where the agent numbers them; `None` at the end.
    ///
    /// An error is the last thing a stream says. Cancel safe: no event is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<(Option<u64>, Event)>, Error> {
        let next = self.read().await;
        if !matches!(next, Ok(Some(_))) {
            self.response = None;
        }
        next
    }

    /// How long the agent asks to stay away before subscribing again. Agents say so before they end a stream
    /// whose task goes on.
    pub fn retry(&self) -> Option<Duration> {
        self.reader.retry()
    }

    /// Whether the agent takes the same message twice for once.
    pub(crate) fn replays(&self) -> bool {
        self.replays
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
                Some(piece) => self.reader.feed(piece),
            }
        }
    }
}
