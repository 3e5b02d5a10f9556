//! A parser of server-sent events with a limit on the size of one event.

use std::collections::VecDeque;

/// One event with the fields that it has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) event: Option<String>,
    pub(super) data: Option<String>,
    pub(super) id: Option<String>,
    pub(super) retry: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub(super) struct TooLarge(usize);

/// Takes bytes, returns events.
pub(super) struct Parser {
    max: usize,
    /// Bytes of the event that is not complete yet.
    size: usize,
    line: Vec<u8>,
    after_cr: bool,
    event: Event,
    complete: VecDeque<Event>,
}

impl Parser {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            size: 0,
            line: Vec::new(),
            after_cr: false,
            event: Event::default(),
            complete: VecDeque::new(),
        }
    }

    /// The next complete event.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.complete.pop_front()
    }

    /// Adds the next bytes. Nothing may be added after an error.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => self.end_line(),
                _ => {
                    self.size += 1;
                    if self.size > self.max {
                        return Err(TooLarge(self.max));
                    }
                    self.line.push(byte);
                }
            }
        }
        Ok(())
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "" if line.is_empty() => {
                self.size = 0;
                if self.event != Event::default() {
                    self.complete.push_back(std::mem::take(&mut self.event));
                }
            }
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            "event" => self.event.event = Some(value.to_owned()),
            "id" => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            // A comment does not count towards the event; keep-alive comments may come for hours.
            "" => self.size -= self.line.len(),
            _ => {}
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(chunks: &[&str]) -> Vec<Event> {
        let mut parser = Parser::new(100);
        chunks.iter().for_each(|chunk| parser.add(chunk.as_bytes()).unwrap());
        std::iter::from_fn(|| parser.next()).collect()
    }

    #[test]
    fn events_are_found_wherever_the_bytes_are_split() {
        let text = "\u{feff}: hello\r\nid: 1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nretry: 5\n\ndata: x\r\rdata: unfinished";
        let whole = parse(&[text]);
        assert_eq!(whole.len(), 3);
        assert_eq!((whole[0].id.as_deref(), whole[0].data.as_deref()), (Some("1"), Some("{\"a\":\n1}")));
        assert_eq!((whole[1].retry, whole[2].data.as_deref()), (Some(5), Some("x")));
        for split in (1..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(parse(&[&text[..split], &text[split..]]), whole, "split at {split}");
        }
    }

    #[test]
    fn event_is_bounded_but_comments_are_not() {
        let mut parser = Parser::new(10);
        (0..100).for_each(|_| parser.add(b": ping\n").unwrap());
        parser.add(b"data: 1234\n\ndata: 5678\n").unwrap();
        assert_eq!(parser.add(b"data").unwrap_err().to_string(), "an event is larger than 10 bytes");
    }
}
