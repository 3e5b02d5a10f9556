//! Percent-encoding, and the pairs of a query.

use std::borrow::Cow;

use crate::{Violation, error::in_short};

/// What a piece should have been that cannot be decoded.
pub(super) const EXPECTED: &str = "expected percent-encoded UTF-8";

/// The text that percent-encoded text stands for. `None` where an escape is none, or what comes out is not UTF-8.
pub fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => digit(bytes.next()?)? << 4 | digit(bytes.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

/// Writes text so that it can be a piece of a path or of a query.
pub(super) fn percent_encode(out: &mut String, text: &str) {
    const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out.extend([
                '%',
                char::from(DIGITS[usize::from(byte >> 4)]),
                char::from(DIGITS[usize::from(byte & 15)]),
            ]),
        }
    }
}

/// How many pairs a query may have.
const MAX_PAIRS: usize = 1_000;

/// The pairs of a query, decoded. A plus is a space there.
pub(super) fn pairs(query: &str) -> Result<Vec<(String, String)>, Violation> {
    let said = || query.split('&').filter(|pair| !pair.is_empty());
    if said().nth(MAX_PAIRS).is_some() {
        return Err(Violation::new("", format_args!("expected a query of at most {MAX_PAIRS} parameters")));
    }
    let decode = |piece: &str| {
        let spaced = if piece.contains('+') { Cow::Owned(piece.replace('+', " ")) } else { piece.into() };
        percent_decode(&spaced).map(Cow::into_owned)
    };
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wrong = || Violation::new(in_short(name), EXPECTED);
        decode(name).zip(decode(value)).ok_or_else(wrong)
    };
    said().map(pair).collect()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for text in ["", "a", "a/b:c%2F", "größe 🙂", "\0\u{7f}", "+&=?#"] {
            let mut out = String::new();
            percent_encode(&mut out, text);
            assert_eq!(percent_decode(&out).as_deref(), Some(text), "{out}");
        }
        assert_eq!(percent_decode("a%2fb+c").as_deref(), Some("a/b+c"));
        for bad in ["%", "%2", "%zz", "a%f", "%ff", "%c3", "%+1", "%2é"] {
            assert_eq!(percent_decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_query_is_its_pairs() {
        let read = |query: &str| pairs(query).map_err(|violation| violation.field);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read("a=1&b=x+y%2B&&c&=d&a=2=3").unwrap(),
            [pair("a", "1"), pair("b", "x y+"), pair("c", ""), pair("", "d"), pair("a", "2=3"),]
        );
        assert_eq!(read("a=1&status=%"), Err("status".into()));
        assert_eq!(read("%=1"), Err("%".into()));
        let many = |count| "&a=1".repeat(count);
        assert_eq!(read(&many(MAX_PAIRS)).map(|pairs| pairs.len()), Ok(MAX_PAIRS));
        assert_eq!(read(&many(MAX_PAIRS + 1)), Err("".into()));
    }
}
