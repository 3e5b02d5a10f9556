//! Parses the server-sent events of one response.

use std::ops::Range;

use anyhow::{Context, Result};
use memchr::memmem;

use crate::client::Body;

/// The events of a stream that is still being read.
pub struct Events {
    body: Body,
    unread: Vec<u8>,
    /// Offset in `unread` where the next event begins.
    at: usize,
}

/// One server-sent event.
#[derive(Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The event id, if it has one; all servers here use sequence numbers.
    pub id: Option<u64>,
    /// The data, on one line as every server here writes it.
    pub data: &'a [u8],
}

impl Events {
    /// The events of a body.
    pub fn of(body: Body) -> Self {
        Self { body, unread: Vec::new(), at: 0 }
    }

    /// The next event; `None` at the end of the stream. Cancellation safe.
    pub async fn next(&mut self) -> Result<Option<Event<'_>>> {
        let block = loop {
            match self.block() {
                Some(block) => {
                    self.at = block.end + 2;
                    // A comment is not an event.
                    if !self.unread[block.clone()].starts_with(b":") {
                        break block;
                    }
                }
                None => {
                    self.unread.drain(..self.at);
                    self.at = 0;
                    if !self.body.read(&mut self.unread).await? {
                        anyhow::ensure!(self.unread.is_empty(), "the stream ends within an event");
                        return Ok(None);
                    }
                }
            }
        };
        decode(&self.unread[block]).map(Some)
    }

    /// The range of the next event, if it is completely received.
    fn block(&self) -> Option<Range<usize>> {
        memmem::find(&self.unread[self.at..], b"\n\n").map(|length| self.at..self.at + length)
    }
}

fn decode(block: &[u8]) -> Result<Event<'_>> {
    let mut event = Event { id: None, data: &[] };
    for line in block.split(|byte| *byte == b'\n') {
        if let Some(id) = line.strip_prefix(b"id: ") {
            event.id = Some(std::str::from_utf8(id)?.parse().context("an event's id is not a number")?);
        } else if let Some(data) = line.strip_prefix(b"data: ") {
            event.data = data;
        }
    }
    Ok(event)
}
