//! The lexer: validates that a text is one JSON value, and finds the end of values.
//!
//! [`check`] visits every byte once and allocates only one bit per nesting level. In validated text
//! [`value_end`] and the other functions only search for quotes and brackets. Runs of ordinary string bytes
//! are skipped eight at a time. Interpreting values is left to the reader.

/// Validates that the text is one JSON value. The error is the offset of the first invalid byte.
pub(super) fn check(text: &str) -> Result<(), usize> {
    let bytes = text.as_bytes();
    let mut open = Nesting::default();
    let mut at = skip_space(bytes, 0);
    loop {
        // A value starts here.
        at = match byte(bytes, at) {
            b'"' => check_string(bytes, at)?,
            b'{' => {
                let after = skip_space(bytes, at + 1);
                if byte(bytes, after) != b'}' {
                    open.push(Bracket::Object, bytes.len());
                    at = check_name(bytes, after)?;
                    continue;
                }
                after + 1
            }
            b'[' => {
                let after = skip_space(bytes, at + 1);
                if byte(bytes, after) != b']' {
                    open.push(Bracket::Array, bytes.len());
                    at = after;
                    continue;
                }
                after + 1
            }
            b'-' | b'0'..=b'9' => check_number(bytes, at)?,
            b't' => check_literal(bytes, at, b"true")?,
            b'f' => check_literal(bytes, at, b"false")?,
            b'n' => check_literal(bytes, at, b"null")?,
            _ => return Err(at),
        };
        // The value has ended; close every container that ends with it.
        loop {
            at = skip_space(bytes, at);
            match (open.innermost(), byte(bytes, at)) {
                (None, _) => return if at == bytes.len() { Ok(()) } else { Err(at) },
                (Some(Bracket::Array), b',') => {
                    at = skip_space(bytes, at + 1);
                    break;
                }
                (Some(Bracket::Object), b',') => {
                    at = check_name(bytes, skip_space(bytes, at + 1))?;
                    break;
                }
                (Some(Bracket::Array), b']') | (Some(Bracket::Object), b'}') => {
                    open.pop();
                    at += 1;
                }
                _ => return Err(at),
            }
        }
    }
}

/// The end of the value that starts at `at`, in validated text.
pub(super) fn value_end(bytes: &[u8], at: usize) -> usize {
    match byte(bytes, at) {
        b'"' => string_end(bytes, at),
        b'{' | b'[' => container_end(bytes, at),
        _ => {
            let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}') || is_space(*byte);
            bytes[at..].iter().position(ends).map_or(bytes.len(), |length| at + length)
        }
    }
}

/// The offset after the closing quote of the string that starts at `at`, in validated text.
pub(super) fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        at = skip_plain(bytes, at);
        match byte(bytes, at) {
            b'\\' => at += 2,
            _ => return bytes.len().min(at + 1),
        }
    }
}

/// The first offset from `at` that is not white space.
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while is_space(byte(bytes, at)) {
        at += 1;
    }
    at
}

/// Whether the byte is JSON white space.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The byte at an offset; past the end 0, which never occurs in valid JSON.
pub(super) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

fn container_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0usize;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 1 => depth -= 1,
            b'}' | b']' => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Validates a name and its colon; returns the start of its value.
fn check_name(bytes: &[u8], at: usize) -> Result<usize, usize> {
    if byte(bytes, at) != b'"' {
        return Err(at);
    }
    let colon = skip_space(bytes, check_string(bytes, at)?);
    if byte(bytes, colon) == b':' { Ok(skip_space(bytes, colon + 1)) } else { Err(colon) }
}

fn check_string(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let mut at = at + 1;
    loop {
        at = skip_plain(bytes, at);
        match (byte(bytes, at), byte(bytes, at + 1)) {
            (b'"', _) => return Ok(at + 1),
            (b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
            (b'\\', b'u') => {
                let digits = (at + 2..at + 6).find(|place| !byte(bytes, *place).is_ascii_hexdigit());
                at = digits.map_or(Ok(at + 6), Err)?;
            }
            (b'\\', _) => return Err(bytes.len().min(at + 1)),
            _ => return Err(at),
        }
    }
}

fn check_number(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let mut at = at + usize::from(byte(bytes, at) == b'-');
    at = match byte(bytes, at) {
        b'0' => at + 1,
        _ => check_digits(bytes, at)?,
    };
    if byte(bytes, at) == b'.' {
        at = check_digits(bytes, at + 1)?;
    }
    if matches!(byte(bytes, at), b'e' | b'E') {
        let sign = usize::from(matches!(byte(bytes, at + 1), b'+' | b'-'));
        at = check_digits(bytes, at + 1 + sign)?;
    }
    Ok(at)
}

/// Validates one or more digits.
fn check_digits(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let mut end = at;
    while byte(bytes, end).is_ascii_digit() {
        end += 1;
    }
    if end > at { Ok(end) } else { Err(at) }
}

fn check_literal(bytes: &[u8], at: usize, literal: &[u8]) -> Result<usize, usize> {
    let same = literal.iter().zip(at..).take_while(|(wanted, at)| byte(bytes, *at) == **wanted).count();
    if same == literal.len() { Ok(at + same) } else { Err(at + same) }
}

/// Whether a text can stand between quotes as it is.
pub(super) fn is_plain(text: &[u8]) -> bool {
    skip_plain(text, 0) == text.len()
}

/// The first offset from `at` that ends a run of plain string bytes: a quote, a backslash or a control
/// character.
fn skip_plain(bytes: &[u8], mut at: usize) -> usize {
    let mut rest = bytes.get(at..).unwrap_or_default();
    while let Some((eight, behind)) = rest.split_first_chunk::<8>() {
        let chunk = u64::from_le_bytes(*eight);
        let found = same_as(chunk, b'"') | same_as(chunk, b'\\') | below(chunk, b' ');
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        (rest, at) = (behind, at + 8);
    }
    at + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..b' ')
}

const fn splat(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Sets the high bit of each byte equal to `byte`. Only the lowest match is reliable.
fn same_as(chunk: u64, byte: u8) -> u64 {
    below(chunk ^ splat(byte), 1)
}

/// Sets the high bit of each byte less than `byte`, which is at most 128. Only the lowest match is reliable.
fn below(chunk: u64, byte: u8) -> u64 {
    chunk.wrapping_sub(splat(byte)) & !chunk & splat(0x80)
}

#[derive(Clone, Copy)]
enum Bracket {
    Array,
    Object,
}

/// Stack of open brackets, one bit each: sixteen million take two megabytes.
#[derive(Default)]
struct Nesting {
    depth: usize,
    /// The innermost 64 or fewer, the innermost lowest.
    inner: u64,
    /// The enclosing ones, 64 per element.
    outer: Vec<u64>,
}

impl Nesting {
    /// Pushes a bracket; `document` is the document's length in bytes.
    fn push(&mut self, bracket: Bracket, document: usize) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            if self.depth == 64 {
                // Reserve the maximum at once: growing would leave smaller buffers behind.
                self.outer.reserve_exact(document / 64);
            }
            self.outer.push(self.inner);
        }
        self.inner = self.inner << 1 | u64::from(matches!(bracket, Bracket::Object));
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.inner >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.inner = self.outer.pop().unwrap_or_default();
        }
    }

    fn innermost(&self) -> Option<Bracket> {
        match (self.depth, self.inner & 1) {
            (0, _) => None,
            (_, 0) => Some(Bracket::Array),
            _ => Some(Bracket::Object),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// Fragments that combine into valid or almost valid JSON.
    const PIECES: [&str; 34] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\"a\"",
        "\"\"",
        "\"\\u00e9\"",
        "\"\\ud800\"",
        "\\u12",
        "\\/",
        "\\x",
        "0",
        "-",
        "1",
        ".",
        "e",
        "E+",
        "12",
        "-0.5e-7",
        "true",
        "false",
        "null",
        "nul",
        " ",
        "\n",
        "\t",
        "\u{1}",
        "é",
        "12345678",
        "\u{7f}",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn validation_agrees_with_serde_json(pieces in prop::collection::vec(0..PIECES.len(), 0..12)) {
            let text: String = pieces.into_iter().map(|slice| PIECES[slice]).collect();
            let theirs = serde_json::from_str::<&RawValue>(&text).is_ok();
            prop_assert_eq!(check(&text).is_ok(), theirs, "{}", text);
        }

        #[test]
        fn value_ends_are_found(values in prop::collection::vec(valid(), 0..6), space in "[ \n]{0,3}") {
            let text = format!("[{}]", values.join(&format!("{space},{space}")));
            prop_assert_eq!(check(&text), Ok(()));
            let bytes = text.as_bytes();
            let mut at = 1;
            for value in &values {
                at = skip_space(bytes, at);
                let end = value_end(bytes, at);
                prop_assert_eq!(&text[at..end], value.as_str());
                at = skip_space(bytes, end) + 1;
            }
            prop_assert_eq!(value_end(bytes, 0), text.len());
        }
    }

    fn valid() -> impl Strategy<Value = String> {
        let scalar = prop_oneof![
            Just("-0.5e-7".to_owned()),
            Just("true".to_owned()),
            Just("null".to_owned()),
            r#""([a-z {\[\]},:é]|\\["\\/n]|\\u00[0-9a-f]{2}){0,20}""#.prop_map(|text| text),
        ];
        scalar.prop_recursive(5, 30, 5, |inner| {
            prop::collection::vec(inner, 0..5).prop_map(|values| {
                let members: Vec<String> = values.iter().map(|value| format!("\"\\\"k\": {value}")).collect();
                format!(
                    "[ {} , {{{}}}]",
                    if values.is_empty() { "1".into() } else { values.join(" ,") },
                    members.join(",")
                )
            })
        })
    }

    #[test]
    fn brackets_match_at_any_depth() {
        for depth in [1, 63, 64, 65, 127, 128, 129, 1_000] {
            let open: String = (0..depth).map(|at| if at % 3 == 0 { "{\"a\":" } else { "[" }).collect();
            let close: String = (0..depth).rev().map(|at| if at % 3 == 0 { "}" } else { "]" }).collect();
            assert_eq!(check(&format!("{open}1{close}")), Ok(()), "{depth}");
            assert_eq!(value_end(format!("{open}1{close},").as_bytes(), 0), open.len() + 1 + depth);
            let wrong = close.replacen(['}', ']'], ")", 1);
            assert_eq!(check(&format!("{open}1{wrong}")), Err(open.len() + 1), "{depth}");
            assert!(check(&open).is_err() && check(&format!("{open}1{close}]")).is_err());
        }
    }

    #[test]
    fn scanning_invalid_text_stops_at_its_end() {
        for text in ["", "\"", "\"\\", "{", "[1", "[\"a", "{\"a\":[", "1"] {
            assert!(value_end(text.as_bytes(), 0) <= text.len(), "{text}");
        }
    }
}
