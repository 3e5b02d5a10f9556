//! Server-sent events as peers write them: bytes come in pieces of any size, frames come out.
//!
//! Lines end with LF, CRLF or CR. A frame may spread its data over several `data:` lines. Comments and unknown fields are
//! passed over, and so are `event:` names other than `error`: what a frame means is in its data. A frame that the end of the body
//! cuts off is dropped, and one without data is none. The reader holds at most one frame and never more of it
//! than its limit.

use std::time::Duration;

use bytes::{Buf as _, Bytes};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What stands between two blank lines.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Frame {
    /// The number in this frame's own `id:` line.
    pub(crate) seq: Option<u64>,
    /// It is named `error`.
    pub(crate) is_error: bool,
    /// Its data lines, joined by line feeds.
    pub(crate) data: Vec<u8>,
}

/// A frame grew beyond the limit. Nothing can be read after it.
#[derive(Debug, PartialEq)]
pub(crate) struct TooLarge;

/// Reads frames out of pieces.
pub(crate) struct Reader {
    max_frame_bytes: usize,
    /// What was fed and has not been looked at.
    piece: Bytes,
    /// A line whose end has not come.
    line: Vec<u8>,
    /// The last line ended with CR: a line feed right behind belongs to it.
    after_cr: bool,
    /// No line has been read yet.
    at_start: bool,
    frame: Frame,
    retry: Option<Duration>,
}

impl Reader {
    pub(crate) fn new(max_frame_bytes: usize) -> Self {
        Self {
            max_frame_bytes,
            piece: Bytes::new(),
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            frame: Frame::default(),
            retry: None,
        }
    }

    /// Takes the next piece of the body; [`Self::next`] has given all that was in the one before.
    pub(crate) fn feed(&mut self, piece: Bytes) {
        debug_assert!(self.piece.is_empty(), "a piece is read to its end before the next");
        self.piece = piece;
    }

    /// The next frame that is whole, `None` when more must be fed.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, TooLarge> {
        while let Some(line) = self.next_line()? {
            if !line.is_empty() {
                self.field(&line);
                continue;
            }
            let frame = std::mem::take(&mut self.frame);
            if !frame.data.is_empty() {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// The last `retry:` line: how long to stay away before coming back.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, TooLarge> {
        if self.after_cr && !self.piece.is_empty() {
            self.after_cr = false;
            if self.piece.starts_with(b"\n") {
                self.piece.advance(1);
            }
        }
        let end = self.piece.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let taken = self.piece.split_to(end.unwrap_or(self.piece.len()));
        if self.frame.data.len() + self.line.len() + taken.len() > self.max_frame_bytes {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(&taken);
        if end.is_none() {
            return Ok(None);
        }
        self.after_cr = self.piece.starts_with(b"\r");
        self.piece.advance(1);
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.at_start) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some(line))
    }

    /// Takes in one line; a comment is a field without a name.
    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if !self.frame.data.is_empty() {
                    self.frame.data.push(b'\n');
                }
                self.frame.data.extend_from_slice(value);
            }
            b"event" => self.frame.is_error = value == b"error",
            b"id" => self.frame.seq = number(value),
            b"retry" => self.retry = number(value).map(Duration::from_millis).or(self.retry),
            _ => {}
        }
    }
}

/// Digits and nothing else.
fn number(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 64;

    /// The frames of a body that comes in pieces of `size` bytes.
    fn read(body: &str, size: usize) -> Vec<(Option<u64>, String)> {
        let mut reader = Reader::new(LIMIT);
        let mut frames = Vec::new();
        for piece in body.as_bytes().chunks(size) {
            reader.feed(Bytes::copy_from_slice(piece));
            while let Some(frame) = reader.next().unwrap() {
                frames.push((frame.seq, String::from_utf8(frame.data).unwrap()));
            }
        }
        frames
    }

    /// The body gives these frames, in whatever pieces it comes.
    fn check(body: &str, expected: &[(Option<u64>, &str)]) {
        for size in 1..=body.len().max(1) {
            let frames = read(body, size);
            let frames: Vec<(Option<u64>, &str)> =
                frames.iter().map(|frame| (frame.0, frame.1.as_str())).collect();
            assert_eq!(frames, expected, "{body:?} in pieces of {size}");
        }
    }

    #[test]
    fn lines_end_with_lf_crlf_or_cr() {
        for end in ["\n", "\r\n", "\r"] {
            let body = ["id: 1", "data: a", "", "id: 2", "data: b", "", "", "data: c", "", ""].join(end);
            // With CR alone the last blank line is seen at once: a line feed behind it would be part of it.
            check(&body, &[(Some(1), "a"), (Some(2), "b"), (None, "c")]);
        }
        check("data: a\r\ndata: b\n\rdata: c\r\r", &[(None, "a\nb"), (None, "c")]);
    }

    #[test]
    fn several_data_lines_are_one_text() {
        check("data: {\ndata:  \"a\":1\ndata:}\n\n", &[(None, "{\n \"a\":1\n}")]);
    }

    #[test]
    fn comments_names_and_unknown_fields_are_passed_over() {
        check(":\n\n: alive\n\nevent: message\n:x\ndata: a\nzz: y\nzz\n\n", &[(None, "a")]);
        check("event: ping\n\ndata\n\ndata:\n\n", &[]);
    }

    #[test]
    fn one_space_behind_the_colon_is_not_data() {
        check(
            "data:a\n\ndata: a\n\ndata:  a\n\ndata: a: b\n\n",
            &[(None, "a"), (None, "a"), (None, " a"), (None, "a: b")],
        );
    }

    #[test]
    fn a_byte_order_mark_is_one_at_the_start_only() {
        check("\u{feff}data: a\n\n", &[(None, "a")]);
        check("\u{feff}\ndata: a\n\n\u{feff}data: b\n\n", &[(None, "a")]);
    }

    #[test]
    fn an_id_belongs_to_its_own_frame_and_is_a_number() {
        check("id: 7\n\ndata: a\n\n", &[(None, "a")]);
        for (id, seq) in
            [("18446744073709551615", Some(u64::MAX)), ("x", None), ("-1", None), ("+1", None), ("", None)]
        {
            check(&format!("data: a\nid: {id}\n\n"), &[(seq, "a")]);
        }
    }

    #[test]
    fn what_the_end_cuts_off_is_dropped() {
        check("data: a\n\ndata: b\n", &[(None, "a")]);
        check("data: a", &[]);
        check("", &[]);
    }

    #[test]
    fn retry_is_kept_until_another_number_comes() {
        let mut reader = Reader::new(LIMIT);
        assert_eq!(reader.retry(), None);
        for (line, millis) in
            [("retry: 1000\n", 1000), ("retry: soon\n", 1000), ("retry:5\n", 5), ("retry\n", 5)]
        {
            reader.feed(Bytes::from_static(line.as_bytes()));
            assert_eq!(reader.next(), Ok(None));
            assert_eq!(reader.retry(), Some(Duration::from_millis(millis)), "{line}");
        }
    }

    #[test]
    fn a_frame_is_bounded_by_all_its_lines() {
        let fits = format!("data: {}\n\n", "x".repeat(LIMIT - 6));
        check(&fits, &[(None, &"x".repeat(LIMIT - 6))]);
        let bodies = [
            format!("data: {}\n\n", "x".repeat(LIMIT)),
            "data: xxxxxxxx\n".repeat(LIMIT / 8 + 1),
            format!(":{}", "x".repeat(LIMIT)),
        ];
        for body in bodies {
            for size in [1, 7, body.len()] {
                let mut reader = Reader::new(LIMIT);
                let outcome = body.as_bytes().chunks(size).find_map(|piece| {
                    reader.feed(Bytes::copy_from_slice(piece));
                    reader.next().err()
                });
                assert_eq!(outcome, Some(TooLarge), "{body:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn frames_before_one_that_is_too_large_are_given() {
        let mut reader = Reader::new(LIMIT);
        reader.feed(Bytes::from(format!("data: a\n\ndata: {}\n\n", "x".repeat(LIMIT))));
        assert_eq!(reader.next(), Ok(Some(Frame { data: b"a".to_vec(), ..Frame::default() })));
        assert_eq!(reader.next(), Err(TooLarge));
    }

    #[test]
    fn any_number_of_comments_costs_nothing() {
        let body = ": alive\n".repeat(LIMIT);
        check(&format!("{body}data: a\n\n"), &[(None, "a")]);
    }
}
