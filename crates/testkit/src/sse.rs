//! Server-sent events, parsed as their bytes arrive.
//!
//! Lines must end with LF: the server under test writes no CR, and a CR is an error.

use crate::{Error, malformed};

/// The longest event.
const MAX_BYTES: usize = 64 << 20;

/// An event with data: its `id:` line, if any, and its `data:` lines, joined by line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The value of `id:`.
    pub id: Option<String>,
    /// The values of `data:`.
    pub data: String,
}

impl Event {
    /// Parses a block of lines; `None` for one without data, such as a comment or a `retry:` line.
    pub fn parse(block: &str) -> Option<Self> {
        let (mut id, mut data) = (None, None::<String>);
        for line in block.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match (field, &mut data) {
                ("id", _) => id = Some(value.to_owned()),
                ("data", Some(data)) => *data = format!("{data}\n{value}"),
                ("data", none) => *none = Some(value.to_owned()),
                _ => {}
            }
        }
        data.map(|data| Self { id, data })
    }
}

/// Splits the bytes of a stream into blocks.
#[derive(Debug, Default)]
pub struct Blocks {
    unread: Vec<u8>,
    /// The bytes before this are known not to end a block.
    searched: usize,
}

impl Blocks {
    /// Adds bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.unread.extend_from_slice(bytes);
        if bytes.contains(&b'\r') {
            return Err(malformed("a line of an event stream contains CR"));
        }
        if self.unread.len() > MAX_BYTES { Err(malformed("an event is too long")) } else { Ok(()) }
    }

    /// The next complete block, unchanged: an event with the blank line that ends it, or a single comment or `retry:`
    /// line, or a blank line that ends nothing. Clients dispatch an event at a blank line, so a test must see it.
    pub fn next_block(&mut self) -> Result<Option<String>, Error> {
        let is_line = [&b":"[..], b"retry:", b"\n"].iter().any(|start| self.unread.starts_with(start));
        let end: &[u8] = if is_line { b"\n" } else { b"\n\n" };
        let Some(at) = self.unread[self.searched..].windows(end.len()).position(|bytes| bytes == end) else {
            self.searched = self.unread.len().saturating_sub(end.len() - 1);
            return Ok(None);
        };
        let rest = self.unread.split_off(self.searched + at + end.len());
        let block = std::mem::replace(&mut self.unread, rest);
        self.searched = 0;
        String::from_utf8(block).map(Some).map_err(|_| malformed("an event is not UTF-8"))
    }

    /// Checks that the stream does not end in the middle of an event.
    pub fn finish(&self) -> Result<(), Error> {
        match self.unread.as_slice() {
            [] => Ok(()),
            _ => Err(malformed("the stream ends in the middle of an event")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_same_however_the_bytes_arrive() {
        let stream = ":\nretry: 1000\nid: 7\ndata: a\ndata: b\n\n: comment\n\ndata:c\n\n";
        let expected =
            [":\n", "retry: 1000\n", "id: 7\ndata: a\ndata: b\n\n", ": comment\n", "\n", "data:c\n\n"];
        for size in 1..stream.len() {
            let (mut blocks, mut seen) = (Blocks::default(), Vec::new());
            for piece in stream.as_bytes().chunks(size) {
                blocks.push(piece).unwrap();
                while let Some(block) = blocks.next_block().unwrap() {
                    seen.push(block);
                }
            }
            assert_eq!(seen, expected, "{size}");
            blocks.finish().unwrap();
        }
    }

    #[test]
    fn comments_and_retry_lines_are_not_events() {
        assert_eq!((Event::parse(":\n"), Event::parse("retry: 1000\n")), (None, None));
        let event = Event { id: Some("7".to_owned()), data: "a\nb".to_owned() };
        assert_eq!(Event::parse("id: 7\ndata: a\ndata:b\n\n"), Some(event));
    }

    #[test]
    fn stream_that_ends_within_an_event_is_malformed() {
        let mut blocks = Blocks::default();
        blocks.push(b"id: 7\ndata: a\n").unwrap();
        assert!(matches!((blocks.next_block(), blocks.finish()), (Ok(None), Err(Error::Malformed(_)))));
    }
}
