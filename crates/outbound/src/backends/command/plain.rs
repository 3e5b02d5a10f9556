//! The output of a command as its result.
//!
//! An output that is one JSON object or array is data. Any other output is text, streamed as it arrives; only a beginning
//! that may become such a value is held back. So what the result is depends on the output alone, never on its timing.

use std::time::Duration;

use bytes::BytesMut;
use protocol::Part;
use serde::de::IgnoredAny;
use tokio::time::timeout;

use super::output::{Interrupted, Output};
use crate::backend::{Call, Reply, json_part};

/// Maximum size of data, in bytes; a larger value is text.
const MAX_VALUE: usize = 1 << 20;
/// Text that ends within this time is the result as a whole, which needs one commit less than a stream.
const SHORT_TIME: Duration = Duration::from_millis(50);

/// Reads the whole output.
pub(super) async fn read(call: &Call<'_>, mut output: Output) -> Result<Reply, Interrupted> {
    let mut buffer = BytesMut::new();
    if read_value(&mut output, &mut buffer).await? || read_short(&mut output, &mut buffer).await? {
        return Ok(Reply::Done(result(&buffer)));
    }
    loop {
        let text = take_text(&mut buffer);
        if !text.is_empty() {
            call.chunk(vec![Part::text(text)]).await?;
        }
        if !output.read(&mut buffer).await? {
            if !buffer.is_empty() {
                // An incomplete character.
                call.chunk(vec![Part::text(String::from_utf8_lossy(&buffer))]).await?;
            }
            return Ok(Reply::Streamed);
        }
    }
}

/// Reads as long as the output may be one value; `true` if it has ended.
async fn read_value(output: &mut Output, buffer: &mut BytesMut) -> Result<bool, Interrupted> {
    let mut check_at = 0;
    while output.read(buffer).await? {
        if buffer.len() >= check_at {
            if buffer.len() > MAX_VALUE || !may_become_value(buffer) {
                return Ok(false);
            }
            // Each check parses everything again, so the next one waits for a part of that.
            check_at = buffer.len() + buffer.len() / 8;
        }
    }
    Ok(true)
}

/// Reads until the end, for a short time; `false` if that is not reached.
async fn read_short(output: &mut Output, buffer: &mut BytesMut) -> Result<bool, Interrupted> {
    let read = async {
        while buffer.len() <= MAX_VALUE {
            if !output.read(buffer).await? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    timeout(SHORT_TIME, read).await.unwrap_or(Ok(false))
}

/// Whether this is an object or an array, or the beginning of one.
fn may_become_value(output: &[u8]) -> bool {
    match output.trim_ascii_start().first() {
        None => true,
        Some(b'{' | b'[') => match serde_json::from_slice::<IgnoredAny>(output) {
            Ok(_) => true,
            Err(error) => error.is_eof(),
        },
        Some(_) => false,
    }
}

/// The parts of the result; none if there is no output.
fn result(output: &[u8]) -> Vec<Part> {
    if output.is_empty() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(output);
    let is_value = may_become_value(output);
    vec![json_part(&text).filter(|_| is_value).unwrap_or_else(|| Part::text(text))]
}

/// Takes everything but the beginning of a character whose end was not read yet. Bytes that are not UTF-8 are replaced.
fn take_text(buffer: &mut BytesMut) -> String {
    let complete = buffer.len() - incomplete(buffer);
    String::from_utf8_lossy(&buffer.split_to(complete)).into_owned()
}

/// The length of an incomplete character at the end.
fn incomplete(bytes: &[u8]) -> usize {
    for (index, byte) in bytes.iter().rev().take(3).enumerate() {
        let length = match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if length > index + 1 { index + 1 } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_objects_and_arrays_are_held_back() {
        for held in ["", " \n", "{", " [1, {\"a\": \"\u{20ac}", "[tr", "{\"a\": 1}\n"] {
            assert!(may_become_value(held.as_bytes()), "{held}");
        }
        for text in ["a", "1", "\"a", "[info] begin", "{a", "{\"n\": 1}\n{\"n\": 2}\n", "[1] ok"] {
            assert!(!may_become_value(text.as_bytes()), "{text}");
        }
        assert!(may_become_value(b"[\"\xe2\x82"), "an incomplete character");
    }

    #[test]
    fn text_is_split_between_characters() {
        let text = "aé€😀\n";
        for split in 0..=text.len() {
            let mut buffer = BytesMut::from(&text.as_bytes()[..split]);
            let first = take_text(&mut buffer);
            buffer.extend_from_slice(&text.as_bytes()[split..]);
            let second = take_text(&mut buffer);
            assert_eq!((first + &second, buffer.len()), (text.to_owned(), 0), "split at {split}");
        }
        let mut invalid = BytesMut::from(&b"a\xff\x80b\xe2\x82"[..]);
        assert_eq!((take_text(&mut invalid), invalid.len()), ("a\u{fffd}\u{fffd}b".to_owned(), 2));
    }
}
