//! Reading a document one level at a time with path tracking.
//!
//! A [`Node`] is a raw JSON value and its path from the root of the request; an [`Object`] gives access to
//! members by name. A mismatch becomes a [`Violation`] with the field's path and what was expected. The rules
//! are those of ProtoJSON: camelCase and snake_case names, `null` means absent, unknown fields are ignored,
//! the last of duplicate keys wins, integers may be numbers, integral floats or decimal strings, enums may be
//! names or numbers.

mod object;

use std::{borrow::Cow, fmt};

pub use object::Object;

use super::{Json, MAX_DEPTH, MAX_KEPT_DEPTH, Raw, contents::Contents, text};
use crate::{error::Violation, model::Timestamp};

/// The result of reading: the value, or the first violation.
pub type Read<T> = Result<T, Violation>;

/// The path of a node: a chain of names and indexes back to the root, formatted only for a violation.
#[derive(Clone, Copy)]
pub enum Path<'p> {
    /// The root of the document.
    Root,
    /// A field of an object.
    Field(&'p Path<'p>, &'p str),
    /// An element of an array.
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => out.write_str(name),
            Path::Field(parent, name) => write!(out, "{parent}.{name}"),
            Path::Index(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

/// Maximum number of strings in a list.
pub const MAX_TEXTS: usize = 10_000;
/// Maximum length in bytes of a member name and of a request string that is not content.
pub const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum size in bytes of a list of strings in a request.
pub const MAX_TEXTS_BYTES: usize = 1 << 20;
/// Maximum length in bytes of a number, a timestamp or an enumeration value.
const MAX_TOKEN_BYTES: usize = 1_024;

/// One value of a document and its path.
#[derive(Clone, Copy)]
pub struct Node<'a, 'p> {
    raw: Raw<'a>,
    path: &'p Path<'p>,
    bounds: Bounds,
}

/// Limits on the length of strings that are not content, and on nesting. Lengths are checked before anything
/// is copied.
#[derive(Clone, Copy)]
enum Bounds {
    /// No limit on strings: our own stored data, and responses to our requests.
    None,
    /// The limits for requests from clients.
    Request,
}

impl Bounds {
    fn text(self) -> usize {
        match self {
            Self::None => usize::MAX,
            Self::Request => MAX_TEXT_BYTES,
        }
    }

    fn texts(self) -> usize {
        match self {
            Self::None => usize::MAX,
            Self::Request => MAX_TEXTS_BYTES,
        }
    }

    fn depth(self) -> usize {
        match self {
            Self::None => MAX_KEPT_DEPTH,
            Self::Request => MAX_DEPTH,
        }
    }
}

impl<'a, 'p> Node<'a, 'p> {
    /// A node for a value at this path.
    pub fn new(raw: Raw<'a>, path: &'p Path<'p>) -> Self {
        Self { raw, path, bounds: Bounds::None }
    }

    /// The same value with the limits of a client request: strings that are not content are limited at every
    /// depth, nesting is less deep, and lists of parts must not be empty.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self { bounds: Bounds::Request, ..self }
    }

    /// Whether the limits of a client request apply.
    pub(crate) fn is_request(&self) -> bool {
        matches!(self.bounds, Bounds::Request)
    }

    /// The raw value without its path.
    pub fn raw(&self) -> Raw<'a> {
        self.raw
    }

    /// The JSON text of this value.
    pub fn text(&self) -> &'a str {
        self.raw.get()
    }

    /// A violation at this path.
    pub fn expected(&self, what: impl fmt::Display) -> Violation {
        Violation::new(self.path, format_args!("expected {what}"))
    }

    /// The value as an object.
    pub fn object(&self) -> Read<Object<'a, 'p>> {
        Object::of(self)
    }

    /// Reads every element of an array with `each`.
    pub fn list<T>(&self, each: impl FnMut(Node<'a, '_>) -> Read<T>) -> Read<Vec<T>> {
        self.list_up_to(usize::MAX, "elements", each)
    }

    /// Reads an array of at most `max` `things`. Elements are counted before any of them is read.
    pub fn list_up_to<T>(
        &self,
        max: usize,
        things: &str,
        mut each: impl FnMut(Node<'a, '_>) -> Read<T>,
    ) -> Read<Vec<T>> {
        let Some(mut contents) = Contents::of(self.text(), b'[') else {
            return Err(self.expected("an array"));
        };
        let mut elements = Vec::new();
        while contents.next().is_some() {
            if elements.len() == max {
                return Err(self.expected(format_args!("at most {max} {things}")));
            }
            elements.push(contents.value());
        }
        let mut list = Vec::with_capacity(elements.len());
        for (index, raw) in elements.into_iter().enumerate() {
            list.push(each(Node { raw, path: &Path::Index(self.path, index), bounds: self.bounds })?);
        }
        Ok(list)
    }

    /// Reads a list that must not be empty in a request.
    pub(crate) fn non_empty_list<T>(
        &self,
        max: usize,
        things: &str,
        what: &str,
        each: impl FnMut(Node<'a, '_>) -> Read<T>,
    ) -> Read<Vec<T>> {
        let list = self.list_up_to(max, things, each)?;
        if list.is_empty() && self.is_request() { Err(self.expected(what)) } else { Ok(list) }
    }

    /// Reads a list of strings, each converted by `each`.
    pub fn texts<T>(&self, things: &str, each: impl FnMut(Node<'a, '_>) -> Read<T>) -> Read<Vec<T>> {
        if self.text().len() > self.bounds.texts() {
            return Err(self.expected(format_args!("{things} of at most {MAX_TEXTS_BYTES} bytes in all")));
        }
        self.list_up_to(MAX_TEXTS, things, each)
    }

    /// The value as a string of any length, for content.
    pub fn string(&self) -> Read<Cow<'a, str>> {
        let is_string = self.text().starts_with('"');
        let text = if is_string { text::unescape(self.text()) } else { None };
        text.ok_or_else(|| self.expected("a string"))
    }

    /// The value as a string that is not content, limited in length in a request.
    pub fn short_string(&self) -> Read<Cow<'a, str>> {
        let most = self.bounds.text();
        let too_long = || self.expected(format_args!("at most {most} bytes"));
        let longest = most.saturating_mul(text::LONGEST_ESCAPE).saturating_add("\"\"".len());
        if self.text().len() > longest && self.text().starts_with('"') {
            return Err(too_long());
        }
        let text = self.string()?;
        if text.len() > most { Err(too_long()) } else { Ok(text) }
    }

    /// The value as a short string: an enumeration value, a timestamp or a number.
    pub fn token(&self) -> Read<Cow<'a, str>> {
        if self.text().len() > MAX_TOKEN_BYTES {
            Err(self.expected(format_args!("a string of at most {MAX_TOKEN_BYTES} bytes")))
        } else {
            self.string()
        }
    }

    /// The value as an owned, non-empty string.
    pub fn non_empty_string(&self) -> Read<String> {
        let text = self.short_string()?;
        if text.is_empty() { Err(self.expected("a non-empty string")) } else { Ok(text.into_owned()) }
    }

    /// The value as a boolean.
    pub fn boolean(&self) -> Read<bool> {
        match self.text() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.expected("true or false")),
        }
    }

    /// The value as a 32-bit integer: a number, an integral float, or either as a decimal string.
    pub fn int32(&self) -> Read<i32> {
        self.number().and_then(|text| parse_int32(&text)).ok_or_else(|| self.expected("a 32-bit integer"))
    }

    /// The text of a number, which may be quoted.
    fn number(&self) -> Option<Cow<'a, str>> {
        match self.text() {
            text if text.len() > MAX_TOKEN_BYTES => None,
            text if text.starts_with('"') => text::unescape(text),
            text => Some(Cow::Borrowed(text)),
        }
    }

    /// Decodes base64: standard or URL-safe alphabet, padded or not.
    pub fn bytes(&self) -> Read<Vec<u8>> {
        let is_string = self.text().starts_with('"');
        let bytes = if is_string { text::unbase64(self.text()) } else { None };
        bytes.ok_or_else(|| self.expected("a base64 string"))
    }

    /// Parses an RFC 3339 timestamp.
    pub fn timestamp(&self) -> Read<Timestamp> {
        let wanted = "an RFC 3339 timestamp such as 2026-01-02T03:04:05.678Z";
        let text = self.token().map_err(|_| self.expected(wanted))?;
        Timestamp::parse(&text).ok_or_else(|| self.expected(wanted))
    }

    /// Any JSON value, kept verbatim apart from white space.
    pub fn any(&self) -> Read<Json> {
        Json::with_max_depth(self.bounds.depth(), self.raw).map_err(|problem| self.expected(problem))
    }

    /// A JSON object, kept verbatim apart from white space.
    pub fn any_object(&self) -> Read<Json> {
        if self.text().starts_with('{') { self.any() } else { Err(self.expected("an object")) }
    }

    /// An enumeration value, by name or number.
    pub fn one_of<T: Copy>(&self, what: &str, table: &[(&str, i32, T)]) -> Read<T> {
        let found = if self.text().starts_with('"') {
            let name = self.token().map_err(|_| self.expected(what))?;
            table.iter().find(|row| row.0 == name)
        } else {
            self.int32().ok().and_then(|number| table.iter().find(|row| row.1 == number))
        };
        found.map(|row| row.2).ok_or_else(|| self.expected(what))
    }

    /// Whether the value is JSON `null`.
    pub fn is_null(&self) -> bool {
        self.raw.is_null()
    }
}

fn parse_int32(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let float: f64 = text.parse().ok()?;
    let fits = float.fract() == 0.0 && float >= f64::from(i32::MIN) && float <= f64::from(i32::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "integral and within range")]
    fits.then_some(float as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(text: &str, read: impl FnOnce(Node<'_, '_>) -> Read<T>) -> Read<T> {
        read(Node::new(Raw::parse_text(text).unwrap(), &Path::Root))
    }

    #[test]
    fn fields_match_both_spellings_and_the_last_one_wins() {
        let name = |text| read(text, |node| node.object()?.text("messageId")).unwrap();
        assert_eq!(name(r#"{"message_id":"a"}"#).as_deref(), Some("a"));
        assert_eq!(name(r#"{"messageId":"a","message_id":"b"}"#).as_deref(), Some("b"));
        assert_eq!(name(r#"{"messageid":"a","messageId":null}"#), None);
    }

    #[test]
    fn integers_are_read_in_four_forms() {
        for good in ["5", "5.0", "\"5\"", "\"5.0\"", "5e0"] {
            assert_eq!(read(good, |node| node.int32()).unwrap(), 5, "{good}");
        }
        for bad in ["5.5", "\"x\"", "2147483648", "true", "[]", "\"\"", "1e999"] {
            assert!(read(bad, |node| node.int32()).is_err(), "{bad}");
        }
    }

    #[test]
    fn base64_is_read_in_both_alphabets_with_and_without_padding() {
        for good in ["\"+/8=\"", "\"-_8=\"", "\"+/8\"", "\"-_8\""] {
            assert_eq!(read(good, |node| node.bytes()).unwrap(), [0xfb, 0xff], "{good}");
        }
        assert!(read("\"a b\"", |node| node.bytes()).is_err());
    }

    #[test]
    fn violation_has_the_field_path() {
        let violation = read(r#"{"message":{"parts":[{},{"raw":5}]}}"#, |node| {
            node.object()?.need("message", "a message", |node| {
                node.object()?.list("parts", |node| node.object()?.maybe("raw", |node| node.bytes()))
            })
        })
        .unwrap_err();
        assert_eq!(violation.field, "message.parts[1].raw");
        assert_eq!(violation.problem, "expected a base64 string");
    }
}
