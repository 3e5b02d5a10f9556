//! Decodes streamed bodies: bytes in, parts out (pure).
//!
//! Nothing is held back longer than needed: an event or a line is returned when it is complete, text as it arrives
//! except for an incomplete character at the end.

use bytes::Bytes;
use client::sse::{Frame, Reader};
use protocol::{Content, Json, Part, json::write::Writer};

use crate::backend::json_part;

/// Decodes one body.
pub(super) enum Decoder {
    /// Server-sent events.
    Events(Reader),
    /// One JSON value per line.
    Lines(Lines),
    /// UTF-8.
    Text(Text),
}

impl Decoder {
    /// Events of any size: the size of the whole body is limited.
    pub(super) fn events() -> Self {
        Self::Events(Reader::new(usize::MAX))
    }

    /// The parts that these bytes complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Part> {
        match self {
            Self::Events(events) => parts_of(events, Bytes::copy_from_slice(bytes)),
            Self::Lines(lines) => lines.feed(bytes).iter().filter_map(|line| value(line)).collect(),
            Self::Text(text) => text.feed(bytes).into_iter().collect(),
        }
    }

    /// What is left at the end of the body.
    pub(super) fn finish(self) -> Vec<Part> {
        match self {
            // The blank line after the last event may be absent.
            Self::Events(mut events) => parts_of(&mut events, Bytes::from_static(b"\n\n")),
            Self::Lines(lines) => value(&lines.line).into_iter().collect(),
            Self::Text(text) => text.finish().into_iter().collect(),
        }
    }
}

/// The data of one event or line: JSON, else text; `None` if there is none.
fn value(bytes: &[u8]) -> Option<Part> {
    let text = String::from_utf8_lossy(bytes);
    let is_empty = text.trim().is_empty();
    (!is_empty).then(|| json_part(&text).unwrap_or_else(|| Part::text(text)))
}

/// Splits at LF, CRLF and CR.
#[derive(Default)]
pub(super) struct Lines {
    /// The incomplete last line.
    line: Vec<u8>,
    after_cr: bool,
}

impl Lines {
    fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for byte in bytes {
            let follows_cr = std::mem::replace(&mut self.after_cr, *byte == b'\r');
            match byte {
                b'\n' if follows_cr => {}
                b'\r' | b'\n' => lines.push(std::mem::take(&mut self.line)),
                byte => self.line.push(*byte),
            }
        }
        lines
    }
}

/// The parts of the events that these bytes complete.
fn parts_of(events: &mut Reader, bytes: Bytes) -> Vec<Part> {
    events.feed(bytes);
    // No event is too large for this reader.
    std::iter::from_fn(|| events.next_frame().ok().flatten()).filter_map(part_of).collect()
}

/// The part of one event. Its name is kept in `metadata.a2ad.event`.
fn part_of(event: Frame) -> Option<Part> {
    let part = value(&event.data?)?;
    let metadata = event.event.filter(|name| !name.is_empty()).and_then(|name| event_metadata(&name));
    Some(Part { metadata, ..part })
}

fn event_metadata(event: &str) -> Option<Json> {
    let mut writer = Writer::new();
    writer.object(|out| out.key("a2ad").object(|out| out.text("event", event)));
    Json::parse(&String::from_utf8(writer.finish()).ok()?).ok()
}

/// Text of one media type.
#[derive(Default)]
pub(super) struct Text {
    media_type: Option<String>,
    /// The beginning of a character.
    rest: Vec<u8>,
}

impl Text {
    pub(super) fn new(media_type: &str) -> Self {
        let media_type = (media_type != "text/plain").then(|| media_type.to_owned());
        Self { media_type, rest: Vec::new() }
    }

    fn feed(&mut self, bytes: &[u8]) -> Option<Part> {
        self.rest.extend_from_slice(bytes);
        let rest = self.rest.split_off(complete(&self.rest));
        let complete = std::mem::replace(&mut self.rest, rest);
        self.part(&complete)
    }

    fn finish(self) -> Option<Part> {
        self.part(&self.rest)
    }

    fn part(&self, bytes: &[u8]) -> Option<Part> {
        let content = Content::Text(String::from_utf8_lossy(bytes).into_owned());
        (!bytes.is_empty()).then(|| Part { media_type: self.media_type.clone(), ..Part::new(content) })
    }
}

/// How many bytes there are before an incomplete character at the end.
fn complete(bytes: &[u8]) -> usize {
    let mut chunks = bytes.utf8_chunks();
    let last = chunks.by_ref().last().map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(last) {
        Err(error) if error.error_len().is_none() => bytes.len() - last.len(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a body that arrives in pieces of every size.
    fn decode(make: impl Fn() -> Decoder, body: &[u8]) -> Vec<String> {
        let show = |part: Part| {
            let metadata = part.metadata.map(|json| format!(" {}", json.as_str())).unwrap_or_default();
            match part.content {
                Content::Text(text) => format!("{text}{metadata}"),
                Content::Data(json) => format!("json {}{metadata}", json.as_str()),
                other => panic!("{other:?}"),
            }
        };
        let pieces = |size| {
            let mut decoder = make();
            let mut parts: Vec<_> = body.chunks(size).flat_map(|bytes| decoder.feed(bytes)).collect();
            parts.extend(decoder.finish());
            parts.into_iter().map(show).collect::<Vec<_>>()
        };
        let whole = pieces(body.len());
        if !matches!(make(), Decoder::Text(_)) {
            (1..body.len()).for_each(|size| assert_eq!(pieces(size), whole, "pieces of {size}"));
        } else {
            (1..body.len()).for_each(|size| assert_eq!(pieces(size).concat(), whole.concat()));
        }
        whole
    }

    #[test]
    fn data_of_events_is_json_or_text() {
        let body = b"\xef\xbb\xbfdata: {\"a\": 1}\r\n\r\nevent: x\nid: 7\ndata: two\ndata:lines\n\n: comment\n\ndata\n\nretry: 1\n\n\
            datax: no\n\rdata: 5\r\rdata: last";
        let seen = decode(Decoder::events, body);
        let named = r#"{"a2ad":{"event":"x"}}"#;
        assert_eq!(seen, ["json {\"a\":1}", &format!("two\nlines {named}"), "json 5", "last"]);
    }

    #[test]
    fn each_line_is_a_value() {
        let seen = decode(
            || Decoder::Lines(Lines::default()),
            b"{\"a\": 1}\n\n[2]\r\nnot json\n  \n9007199254740993",
        );
        assert_eq!(seen, ["json {\"a\":1}", "json [2]", "not json", "json 9007199254740993"]);
    }

    #[test]
    fn characters_are_not_split_and_invalid_bytes_are_replaced() {
        let text = || Decoder::Text(Text::new("text/plain"));
        assert_eq!(decode(text, "zażółć 𝄞".as_bytes()), ["zażółć 𝄞"]);
        let mut decoder = text();
        assert_eq!(decoder.feed(b"a\xf0\x9d"), [Part::text("a")]);
        assert_eq!(decoder.feed(b"\x84"), []);
        assert_eq!(decoder.feed(b"\x9eb"), [Part::text("𝄞b")]);
        assert_eq!(decoder.feed(b"\xff\xc3"), [Part::text("\u{fffd}")]);
        assert_eq!(decoder.finish(), [Part::text("\u{fffd}")]);
    }

    #[test]
    fn value_that_is_too_large_for_data_stays_text() {
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let part = json_part(&deep).unwrap();
        assert_eq!(part.media_type.as_deref(), Some("application/json"));
        assert_eq!(part.content, Content::Text(deep));
        assert_eq!(json_part("{"), None);
    }
}
