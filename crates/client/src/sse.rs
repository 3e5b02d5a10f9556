//! Server-sent events: body chunks of any size in, frames out.
//!
//! Lines end with LF, CRLF or CR. A frame may have several `data:` lines; comments and unknown fields are ignored. An
//! incomplete frame at the end of the body is dropped. The reader buffers at most one frame, up to its size limit.
//!
//! Public for `outbound`, whose MCP client reads the same format.

use std::time::Duration;

use bytes::{Buf as _, Bytes};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The fields between two blank lines, as far as they are there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The value of `event:`.
    pub event: Option<String>,
    /// The value of `id:`.
    pub id: Option<String>,
    /// The data lines, joined by line feeds.
    pub data: Option<Vec<u8>>,
    /// How long to wait before reconnecting, in milliseconds.
    pub retry: Option<u64>,
}

impl Frame {
    /// The id, if it is a number.
    pub(crate) fn seq(&self) -> Option<u64> {
        number(self.id.as_ref()?.as_bytes())
    }
}

/// A frame exceeded the size limit. The rest of the stream cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub struct TooLarge(pub usize);

/// Decodes frames from body chunks.
pub struct Reader {
    max_frame_bytes: usize,
    /// The unread rest of the last chunk.
    chunk: Bytes,
    /// An incomplete line.
    line: Vec<u8>,
    /// The last line ended with CR: a directly following LF belongs to it.
    after_cr: bool,
    /// No line has been read yet.
    at_start: bool,
    frame: Frame,
    retry: Option<Duration>,
}

impl Reader {
    /// Reads frames of at most this size.
    pub fn new(max_frame_bytes: usize) -> Self {
        Self {
            max_frame_bytes,
            chunk: Bytes::new(),
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            frame: Frame::default(),
            retry: None,
        }
    }

    /// Adds the next body chunk. [`Self::next_frame`] must have returned `None` for the previous one.
    pub fn feed(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the previous chunk must be consumed first");
        self.chunk = chunk;
    }

    /// The next complete frame; `None` if another chunk is needed.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, TooLarge> {
        while let Some(line) = self.next_line()? {
            if !line.is_empty() {
                self.field(&line);
                continue;
            }
            let frame = std::mem::take(&mut self.frame);
            if frame != Frame::default() {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// The last `retry:` value: how long to wait before reconnecting.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, TooLarge> {
        if self.after_cr && !self.chunk.is_empty() {
            self.after_cr = false;
            if self.chunk.starts_with(b"\n") {
                self.chunk.advance(1);
            }
        }
        let end = self.chunk.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let taken = self.chunk.split_to(end.unwrap_or(self.chunk.len()));
        let data = self.frame.data.as_ref().map_or(0, Vec::len);
        if data + self.line.len() + taken.len() > self.max_frame_bytes {
            return Err(TooLarge(self.max_frame_bytes));
        }
        self.line.extend_from_slice(&taken);
        if end.is_none() {
            return Ok(None);
        }
        self.after_cr = self.chunk.starts_with(b"\r");
        self.chunk.advance(1);
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.at_start) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some(line))
    }

    /// Applies one line; a comment is a field with an empty name.
    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => match &mut self.frame.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            },
            b"event" => self.frame.event = Some(String::from_utf8_lossy(value).into_owned()),
            b"id" => self.frame.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => {
                self.frame.retry = number(value);
                self.retry = self.frame.retry.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }
}

/// Parses a number that consists of digits only.
fn number(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 64;

    /// The frames of a body that is split into chunks of `size` bytes.
    fn read(body: &str, size: usize) -> Vec<(Option<u64>, String)> {
        let mut reader = Reader::new(LIMIT);
        let mut frames = Vec::new();
        for chunk in body.as_bytes().chunks(size) {
            reader.feed(Bytes::copy_from_slice(chunk));
            while let Some(frame) = reader.next_frame().unwrap() {
                let seq = frame.seq();
                frames.extend(frame.data.map(|data| (seq, String::from_utf8(data).unwrap())));
            }
        }
        frames
    }

    /// Checks that the body decodes to these frames for every chunk size.
    fn check(body: &str, expected: &[(Option<u64>, &str)]) {
        for size in 1..=body.len().max(1) {
            let frames = read(body, size);
            let frames: Vec<(Option<u64>, &str)> =
                frames.iter().map(|frame| (frame.0, frame.1.as_str())).collect();
            assert_eq!(frames, expected, "{body:?} in chunks of {size}");
        }
    }

    #[test]
    fn lines_end_with_lf_crlf_or_cr() {
        for end in ["\n", "\r\n", "\r"] {
            let body = ["id: 1", "data: a", "", "id: 2", "data: b", "", "", "data: c", "", ""].join(end);
            // With CR alone the last blank line is complete at once: a following LF would belong to it.
            check(&body, &[(Some(1), "a"), (Some(2), "b"), (None, "c")]);
        }
        check("data: a\r\ndata: b\n\rdata: c\r\r", &[(None, "a\nb"), (None, "c")]);
    }

    #[test]
    fn data_lines_are_joined() {
        check("data: {\ndata:  \"a\":1\ndata:}\n\n", &[(None, "{\n \"a\":1\n}")]);
    }

    #[test]
    fn comments_and_unknown_fields_are_ignored() {
        check(":\n\n: alive\n\nevent: message\n:x\ndata: a\nzz: y\nzz\n\n", &[(None, "a")]);
        check("event: ping\n\ndata\n\ndata:\n\n", &[(None, ""), (None, "")]);
    }

    #[test]
    fn one_space_after_the_colon_is_not_data() {
        check(
            "data:a\n\ndata: a\n\ndata:  a\n\ndata: a: b\n\n",
            &[(None, "a"), (None, "a"), (None, " a"), (None, "a: b")],
        );
    }

    #[test]
    fn byte_order_mark_is_recognised_at_the_start_only() {
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
    fn all_fields_of_a_frame_are_read() {
        let mut reader = Reader::new(LIMIT);
        reader.feed(Bytes::from_static(b"event: error\nid: a-1\nretry: 5\ndata:\n\nid: b\n\n"));
        let text = |text: &str| Some(text.to_owned());
        let whole = Frame { event: text("error"), id: text("a-1"), data: Some(Vec::new()), retry: Some(5) };
        assert_eq!(reader.next_frame(), Ok(Some(whole)));
        assert_eq!(reader.next_frame(), Ok(Some(Frame { id: text("b"), ..Frame::default() })));
    }

    #[test]
    fn incomplete_last_frame_is_dropped() {
        check("data: a\n\ndata: b\n", &[(None, "a")]);
        check("data: a", &[]);
        check("", &[]);
    }

    #[test]
    fn retry_is_kept_until_the_next_valid_value() {
        let mut reader = Reader::new(LIMIT);
        assert_eq!(reader.retry(), None);
        for (line, millis) in
            [("retry: 1000\n", 1000), ("retry: soon\n", 1000), ("retry:5\n", 5), ("retry\n", 5)]
        {
            reader.feed(Bytes::from_static(line.as_bytes()));
            assert_eq!(reader.next_frame(), Ok(None));
            assert_eq!(reader.retry(), Some(Duration::from_millis(millis)), "{line}");
        }
    }

    #[test]
    fn frame_size_limit_covers_all_lines() {
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
                let outcome = body.as_bytes().chunks(size).find_map(|chunk| {
                    reader.feed(Bytes::copy_from_slice(chunk));
                    reader.next_frame().err()
                });
                assert_eq!(outcome, Some(TooLarge(LIMIT)), "{body:?} in chunks of {size}");
            }
        }
    }

    #[test]
    fn frames_before_an_oversized_one_are_returned() {
        let mut reader = Reader::new(LIMIT);
        reader.feed(Bytes::from(format!("data: a\n\ndata: {}\n\n", "x".repeat(LIMIT))));
        assert_eq!(reader.next_frame(), Ok(Some(Frame { data: Some(b"a".to_vec()), ..Frame::default() })));
        assert_eq!(reader.next_frame(), Err(TooLarge(LIMIT)));
    }

    #[test]
    fn comments_do_not_count_towards_the_limit() {
        let body = ": alive\n".repeat(LIMIT);
        check(&format!("{body}data: a\n\n"), &[(None, "a")]);
    }
}
