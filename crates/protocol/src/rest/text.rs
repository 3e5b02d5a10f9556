//! Percent-encoding and query strings.
//!
//! The usual crates keep an invalid escape as literal text. Here such a request is rejected, so that it
//! cannot address a different task than the client meant.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::{Violation, error::excerpt};

/// Violation text for a segment that cannot be decoded.
pub(super) const EXPECTED: &str = "expected percent-encoded UTF-8";

/// Characters escaped in a path segment or a query: all but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-decodes text. `None` on an invalid escape or if the result is not UTF-8.
pub fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    let is_escape =
        |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok()
}

/// Percent-encodes text for a path segment or a query.
pub fn percent_encode(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, RESERVED));
}

/// Maximum number of query parameters.
const MAX_PAIRS: usize = 1_000;

/// Parses and decodes a query. A plus means a space.
pub(super) fn pairs(query: &str) -> Result<Vec<(String, String)>, Violation> {
    let given = || query.split('&').filter(|pair| !pair.is_empty());
    if given().nth(MAX_PAIRS).is_some() {
        return Err(Violation::new("", format_args!("expected a query of at most {MAX_PAIRS} parameters")));
    }
    if let Some(wrong) = given().find(|pair| percent_decode(pair).is_none()) {
        let name = wrong.split('=').next().unwrap_or_default();
        return Err(Violation::new(excerpt(name), EXPECTED));
    }
    Ok(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_round_trips() {
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
    fn queries_are_split_into_pairs() {
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
