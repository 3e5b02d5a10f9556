//! The output of a command as its result.
//!
//! A command that is done at once has one result: data if it is one JSON value, else text. The output of any other one is
//! streamed as text while it runs.

use std::time::Duration;

use bytes::BytesMut;
use protocol::{Json, Part};
use tokio::time::{Instant, timeout_at};

use super::output::{Interrupted, Output};
use crate::backend::{Call, Reply};

/// The output of a command that is done at once, in bytes at most.
const SHORT: usize = 64 << 10;
/// How long after its first byte such a command may run.
const SHORT_TIME: Duration = Duration::from_millis(200);

/// Reads the whole output.
pub(super) async fn read(call: &Call<'_>, mut output: Output) -> Result<Reply, Interrupted> {
    let mut buffer = BytesMut::new();
    if read_short(&mut output, &mut buffer).await? {
        return Ok(Reply::Done(vec![result(&buffer)]));
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

/// Reads a short output; `false` if it is not short.
async fn read_short(output: &mut Output, buffer: &mut BytesMut) -> Result<bool, Interrupted> {
    let mut more = output.read(buffer).await?;
    let until = Instant::now() + SHORT_TIME;
    while more && buffer.len() <= SHORT {
        match timeout_at(until, output.read(buffer)).await {
            Ok(read) => more = read?,
            Err(_) => return Ok(false),
        }
    }
    Ok(!more)
}

fn result(output: &[u8]) -> Part {
    let text = String::from_utf8_lossy(output);
    match Json::parse(&text) {
        Ok(json) => Part::data(json),
        Err(_) => Part::text(text),
    }
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
