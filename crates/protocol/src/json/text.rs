//! Quoted strings of a document: unescaping and base64 decoding.
//!
//! Base64 is validated before decoding, so invalid input is rejected without an allocation; a decoded string
//! takes no more memory than its source.

use std::borrow::Cow;

use base64::{
    Engine as _,
    engine::{DecodePaddingMode::Indifferent, GeneralPurpose, GeneralPurposeConfig},
};

/// Maximum number of document bytes per byte of a string: `\u0041`.
pub(super) const LONGEST_ESCAPE: usize = 6;

/// The unescaped content of a quoted string. `None` if an escape is a lone surrogate.
pub(super) fn unescape(quoted: &str) -> Option<Cow<'_, str>> {
    let inner = inner(quoted);
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        let (character, length) = escaped(escape.as_bytes())?;
        text.push_str(plain);
        text.push(character);
        rest = &escape[length..];
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

/// Decodes a quoted base64 string: standard or URL-safe alphabet, padded or not.
pub(super) fn unbase64(quoted: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(Indifferent)
        .with_decode_allow_trailing_bits(true);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, LENIENT);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, LENIENT);
    let mut digits = Digits::default();
    let mut rest = inner(quoted);
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        let (character, length) = escaped(escape.as_bytes())?;
        digits.read(plain.as_bytes());
        digits.read(&[u8::try_from(character).ok()?]);
        rest = &escape[length..];
    }
    digits.read(rest.as_bytes());
    let engine = if digits.are_url_safe()? { URL_SAFE } else { STANDARD };
    engine.decode(unescape(quoted)?.as_ref()).ok()
}

fn inner(quoted: &str) -> &str {
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default()
}

/// The character of the escape at the start of the bytes, and the escape's length.
fn escaped(bytes: &[u8]) -> Option<(char, usize)> {
    let simple = match bytes.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return escaped_by_number(bytes),
    };
    Some((simple, 2))
}

fn escaped_by_number(bytes: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + LONGEST_ESCAPE)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let first = unit(0)?;
    if !(0xd800..0xdc00).contains(&first) {
        // The second half of a surrogate pair is not a character by itself.
        return Some((char::from_u32(first)?, LONGEST_ESCAPE));
    }
    let second = unit(LONGEST_ESCAPE).filter(|second| (0xdc00..0xe000).contains(second))?;
    let character = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    Some((char::from_u32(character)?, 2 * LONGEST_ESCAPE))
}

/// Classifies the base64 characters read so far, so that the alphabet is known without decoding twice.
#[derive(Default)]
struct Digits {
    count: usize,
    padding: usize,
    kinds: u8,
}

impl Digits {
    const STANDARD: u8 = 1;
    const URL_SAFE: u8 = 2;
    const NONE: u8 = 4;
    const KINDS: [u8; 256] = {
        let mut kinds = [Self::NONE; 256];
        let mut at = 0usize;
        while at < 256 {
            let byte = at.to_le_bytes()[0];
            if byte.is_ascii_alphanumeric() {
                kinds[at] = 0;
            } else if matches!(byte, b'+' | b'/') {
                kinds[at] = Self::STANDARD;
            } else if matches!(byte, b'-' | b'_') {
                kinds[at] = Self::URL_SAFE;
            }
            at += 1;
        }
        kinds
    };

    fn read(&mut self, bytes: &[u8]) {
        let padding = bytes.iter().rev().take_while(|byte| **byte == b'=').count();
        let digits = &bytes[..bytes.len() - padding];
        if self.padding > 0 && !digits.is_empty() {
            self.kinds |= Self::NONE;
        }
        self.kinds |= digits.iter().fold(0, |kinds, byte| kinds | Self::KINDS[usize::from(*byte)]);
        self.count += digits.len();
        self.padding += padding;
    }

    /// Whether the alphabet is the URL-safe one; `None` if the text is not base64.
    fn are_url_safe(&self) -> Option<bool> {
        let most = match self.count % 4 {
            0 => 0,
            1 => return None,
            last => 4 - last,
        };
        match self.kinds {
            _ if self.padding > most => None,
            0 | Self::STANDARD => Some(false),
            Self::URL_SAFE => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quoted(pieces: &[usize], kinds: &[&str]) -> String {
        format!("\"{}\"", pieces.iter().map(|slice| kinds[slice % kinds.len()]).collect::<String>())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn unescaping_agrees_with_serde_json(pieces in prop::collection::vec(0..100usize, 0..8)) {
            let kinds =
                ["a", "é", "\\n", "\\\"", "\\\\", "\\/", "\\b\\f\\r\\t", "\\u00e9", "\\ud83d", "\\uDE00", "\\u0000", "𝄞"];
            let text = quoted(&pieces, &kinds);
            let theirs = serde_json::from_str::<String>(&text).ok();
            prop_assert_eq!(unescape(&text).map(Cow::into_owned), theirs, "{}", text);
        }

        #[test]
        fn only_valid_base64_is_decoded(pieces in prop::collection::vec(0..100usize, 0..8)) {
            let kinds = ["A", "Zz", "+", "/", "-", "_", "=", "\\/", "\\u0041", "\\u003d", "%", " ", "é", "AAAA"];
            let text = quoted(&pieces, &kinds);
            let plain = serde_json::from_str::<String>(&text).unwrap();
            let lenient = GeneralPurposeConfig::new()
                .with_decode_padding_mode(Indifferent)
                .with_decode_allow_trailing_bits(true);
            let by = |alphabet| GeneralPurpose::new(alphabet, lenient).decode(&plain).ok();
            let theirs = by(&base64::alphabet::STANDARD).or_else(|| by(&base64::alphabet::URL_SAFE));
            prop_assert_eq!(unbase64(&text), theirs, "{}", text);
        }
    }
}
