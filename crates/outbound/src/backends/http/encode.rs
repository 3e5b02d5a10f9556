//! Values in a URL (pure): nothing in a value changes the structure of the path or query around it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A value as it is in a path, a query or a form.
pub(crate) fn encode(value: &str) -> String {
    utf8_percent_encode(value, RESERVED).to_string()
}

/// Why a server could take an encoded path for another one: a server that decodes before it splits and resolves the
/// path, that takes `\` for `/`, or that ends a segment at `;`.
pub(crate) fn ambiguity(path: &str) -> Option<&'static str> {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let name = |segment: &'_ str| segment.split(';').next().is_some_and(|name| matches!(name, "." | ".."));
    if decoded.split(['/', '\\']).any(name) {
        return Some("a path must not have a segment . or ..");
    }
    decoded.chars().any(char::is_control).then_some("a path must not have control characters")
}

/// Whether a `%` is not followed by two hexadecimal digits.
pub(crate) fn has_stray_percent(text: &str) -> bool {
    let follows = |rest: &str| rest.len() >= 2 && rest.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    text.split('%').skip(1).any(|rest| !follows(rest))
}

/// Whether a server could read two query parameters as the same one: the names differ in case at most, or in an index
/// or member in brackets. Both names are decoded.
pub(crate) fn is_same_parameter(one: &str, other: &str) -> bool {
    let base = |name: &str| name.split('[').next().unwrap_or_default().trim().to_ascii_lowercase();
    base(one) == base(other)
}
