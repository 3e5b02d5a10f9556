//! Reading a document one level at a time, knowing where one stands.
//!
//! A [`Node`] is a piece of raw JSON and its path from the root of the request. What does not fit becomes a
//! [`Violation`] that names the field and says what was expected. The rules are those of ProtoJSON: camelCase
//! and snake_case names, `null` means absent, unknown fields are ignored, of duplicate keys the last one
//! wins, integers may come as numbers, integral floats or decimal strings, enums by name or by number.

use std::{borrow::Cow, cell::Cell, fmt};

use base64::Engine as _;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::Json;
use crate::{error::Violation, model::Timestamp};

/// What reading gives: the value, or the first thing that is wrong.
pub type Read<T> = Result<T, Violation>;

/// Where a node stands: a chain of names and indexes back to the root, rendered only when something is wrong.
#[derive(Clone, Copy)]
pub enum Path<'p> {
    /// The root of what is being read.
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

/// How many members an object may have that is read member by member.
const MAX_MEMBERS: usize = 10_000;
/// How many strings a list of them may hold.
pub const MAX_TEXTS: usize = 10_000;

/// One value of the document and its path.
#[derive(Clone, Copy)]
pub struct Node<'a, 'p> {
    raw: &'a RawValue,
    path: &'p Path<'p>,
}

impl<'a, 'p> Node<'a, 'p> {
    /// A node for a value at a known place.
    pub fn new(raw: &'a RawValue, path: &'p Path<'p>) -> Self {
        Self { raw, path }
    }

    /// The JSON text of this value.
    pub fn text(&self) -> &'a str {
        self.raw.get()
    }

    /// A violation at this place.
    pub fn expected(&self, what: impl fmt::Display) -> Violation {
        Violation::new(self.path, format_args!("expected {what}"))
    }

    /// The value as an object.
    pub fn object(&self) -> Read<Object<'a, 'p>> {
        let stopped = Cell::new(Stopped::Other);
        let mut deserializer = serde_json::Deserializer::from_str(self.text());
        let fields = Fields(&stopped).deserialize(&mut deserializer).map_err(|_| match stopped.get() {
            Stopped::TooMany => self.expected(format_args!("an object of at most {MAX_MEMBERS} members")),
            Stopped::Other => self.expected("an object"),
        })?;
        Ok(Object { fields, path: self.path })
    }

    /// Each element of the value, which must be an array, read by `each`.
    pub fn list<T>(&self, each: impl FnMut(Node<'a, '_>) -> Read<T>) -> Read<Vec<T>> {
        self.list_up_to(usize::MAX, "elements", each)
    }

    /// The same, where there may be so many `things` and no more. A list that is longer is not kept in memory.
    pub fn list_up_to<T>(
        &self,
        max: usize,
        things: &str,
        mut each: impl FnMut(Node<'a, '_>) -> Read<T>,
    ) -> Read<Vec<T>> {
        let stopped = Cell::new(Stopped::Other);
        let mut deserializer = serde_json::Deserializer::from_str(self.text());
        let elements = Elements(max, &stopped).deserialize(&mut deserializer);
        let elements = elements.map_err(|_| match stopped.get() {
            Stopped::TooMany => self.expected(format_args!("at most {max} {things}")),
            Stopped::Other => self.expected("an array"),
        })?;
        let mut list = Vec::with_capacity(elements.len());
        for (index, raw) in elements.into_iter().enumerate() {
            list.push(each(Node::new(raw, &Path::Index(self.path, index)))?);
        }
        Ok(list)
    }

    /// The value as a string.
    pub fn string(&self) -> Read<Cow<'a, str>> {
        serde_json::from_str::<Text<'a>>(self.text())
            .map(|text| text.0)
            .map_err(|_| self.expected("a string"))
    }

    /// The value as an owned string of at least one character.
    pub fn filled_string(&self) -> Read<String> {
        let text = self.string()?;
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
        let text = if self.text().starts_with('"') { self.string()? } else { Cow::Borrowed(self.text()) };
        parse_int32(&text).ok_or_else(|| self.expected("a 32-bit integer"))
    }

    /// Bytes from base64: standard or URL-safe alphabet, padded or not.
    pub fn bytes(&self) -> Read<Vec<u8>> {
        let text = self.string().map_err(|_| self.expected("a base64 string"))?;
        decode_base64(&text).ok_or_else(|| self.expected("a base64 string"))
    }

    /// An RFC 3339 point in time.
    pub fn timestamp(&self) -> Read<Timestamp> {
        let wanted = "an RFC 3339 timestamp such as 2026-01-02T03:04:05.678Z";
        let text = self.string().map_err(|_| self.expected(wanted))?;
        Timestamp::parse(&text).ok_or_else(|| self.expected(wanted))
    }

    /// Any JSON value, kept as it came.
    pub fn any(&self) -> Read<Json> {
        Json::from_raw(self.raw).map_err(|problem| self.expected(problem))
    }

    /// A JSON object, kept as it came.
    pub fn any_object(&self) -> Read<Json> {
        if self.text().starts_with('{') { self.any() } else { Err(self.expected("an object")) }
    }

    /// One of a closed set of names or their numbers.
    pub fn one_of<T: Copy>(&self, what: &str, table: &[(&str, i32, T)]) -> Read<T> {
        let found = if self.text().starts_with('"') {
            let name = self.string()?;
            table.iter().find(|row| row.0 == name)
        } else {
            self.int32().ok().and_then(|number| table.iter().find(|row| row.1 == number))
        };
        found.map(|row| row.2).ok_or_else(|| self.expected(what))
    }

    /// Whether the value is JSON `null`.
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }
}

/// An object one level deep: each name with the raw text of its value.
pub struct Object<'a, 'p> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    path: &'p Path<'p>,
}

impl<'a> Object<'a, '_> {
    /// Reads an optional field. Absent and `null` are both `None`.
    pub fn maybe<T>(&self, name: &str, read: impl FnOnce(Node<'a, '_>) -> Read<T>) -> Read<Option<T>> {
        match self.raw(name) {
            Some(raw) if raw.get() != "null" => read(Node::new(raw, &Path::Field(self.path, name))).map(Some),
            _ => Ok(None),
        }
    }

    /// Reads a field that must be there; `what` says what was expected.
    pub fn need<T>(&self, name: &str, what: &str, read: impl FnOnce(Node<'a, '_>) -> Read<T>) -> Read<T> {
        self.maybe(name, read)?.ok_or_else(|| self.lacks(name, what))
    }

    /// Reads an optional list. Absent and `null` are the empty list.
    pub fn list<T>(&self, name: &str, each: impl FnMut(Node<'a, '_>) -> Read<T>) -> Read<Vec<T>> {
        Ok(self.maybe(name, |node| node.list(each))?.unwrap_or_default())
    }

    /// An optional string; the empty string counts as absent, as in ProtoJSON.
    pub fn text(&self, name: &str) -> Read<Option<String>> {
        Ok(self.maybe(name, |node| node.string())?.filter(|text| !text.is_empty()).map(Cow::into_owned))
    }

    /// A string that must be there and not be empty.
    pub fn need_text(&self, name: &str) -> Read<String> {
        self.need(name, "a non-empty string", |node| node.filled_string())
    }

    /// A string that is required but whose absence older peers get away with: then it is empty.
    pub fn text_or_empty(&self, name: &str) -> Read<String> {
        Ok(self.text(name)?.unwrap_or_default())
    }

    /// The same, where there may be so many `things` and no more.
    pub fn list_up_to<T>(
        &self,
        name: &str,
        max: usize,
        things: &str,
        each: impl FnMut(Node<'a, '_>) -> Read<T>,
    ) -> Read<Vec<T>> {
        Ok(self.maybe(name, |node| node.list_up_to(max, things, each))?.unwrap_or_default())
    }

    /// A list of strings.
    pub fn texts(&self, name: &str) -> Read<Vec<String>> {
        self.list_up_to(name, MAX_TEXTS, "strings", |node| node.string().map(Cow::into_owned))
    }

    /// An optional boolean.
    pub fn flag(&self, name: &str) -> Read<Option<bool>> {
        self.maybe(name, |node| node.boolean())
    }

    /// An optional integer that may not be negative.
    pub fn count(&self, name: &str) -> Read<Option<u32>> {
        self.maybe(name, |node| {
            let number = node.int32()?;
            u32::try_from(number).map_err(|_| node.expected("an integer of 0 or more"))
        })
    }

    /// An optional integer of up to 64 bits that may not be negative.
    pub fn long_count(&self, name: &str) -> Read<Option<u64>> {
        self.maybe(name, |node| {
            let text = if node.text().starts_with('"') { node.string()? } else { Cow::Borrowed(node.text()) };
            text.parse().or_else(|_| {
                node.int32().and_then(|number| {
                    u64::try_from(number).map_err(|_| node.expected("an integer of 0 or more"))
                })
            })
        })
    }

    /// An optional JSON object kept as raw text.
    pub fn json_object(&self, name: &str) -> Read<Option<Json>> {
        self.maybe(name, |node| node.any_object())
    }

    /// The value under a name even when it is `null`; the last one where the name is repeated.
    pub fn present(&self, name: &str) -> Option<&'a RawValue> {
        self.raw(name)
    }

    /// Every field as it stands in the text, for maps with free keys.
    pub fn entries<T>(&self, mut each: impl FnMut(&str, Node<'a, '_>) -> Read<T>) -> Read<Vec<T>> {
        self.fields
            .iter()
            .map(|(name, raw)| each(name, Node::new(raw, &Path::Field(self.path, name))))
            .collect()
    }

    /// A violation that says what the missing field should have been.
    pub fn lacks(&self, name: &str, what: &str) -> Violation {
        Violation::new(Path::Field(self.path, name), format_args!("required, expected {what}"))
    }

    /// A violation of the object as a whole.
    pub fn expected(&self, what: &str) -> Violation {
        Violation::new(self.path, format_args!("expected {what}"))
    }

    /// A name that stands twice, if there is one.
    pub fn repeated(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.iter().rev().find(|(key, _)| same_name(key, name)).map(|(_, raw)| *raw)
    }
}

/// Whether a key is the camelCase name or its snake_case form.
fn same_name(key: &str, camel: &str) -> bool {
    if key == camel {
        return true;
    }
    let mut key = key.bytes();
    for wanted in camel.bytes() {
        if wanted.is_ascii_uppercase() {
            if key.next() != Some(b'_') || key.next() != Some(wanted.to_ascii_lowercase()) {
                return false;
            }
        } else if key.next() != Some(wanted) {
            return false;
        }
    }
    key.next().is_none()
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

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::engine::{DecodePaddingMode::Indifferent, GeneralPurpose, GeneralPurposeConfig};
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(Indifferent)
        .with_decode_allow_trailing_bits(true);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, LENIENT);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, LENIENT);
    let engine = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    engine.decode(text).ok()
}

/// A string borrowed from the document where it holds no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// Why a list or an object was not read to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    /// It is none.
    Other,
    /// It has more than may be kept.
    TooMany,
}

/// Reads the members of an object, up to so many.
struct Fields<'s>(&'s Cell<Stopped>);

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(8);
        while let Some((key, raw)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
            if fields.len() == MAX_MEMBERS {
                self.0.set(Stopped::TooMany);
                return Err(A::Error::custom("too many members"));
            }
            fields.push((key.0, raw));
        }
        Ok(fields)
    }
}

/// Reads the elements of an array, up to so many.
struct Elements<'s>(usize, &'s Cell<Stopped>);

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(raw) = sequence.next_element::<&'de RawValue>()? {
            if elements.len() == self.0 {
                self.1.set(Stopped::TooMany);
                return Err(A::Error::custom("too many elements"));
            }
            elements.push(raw);
        }
        Ok(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(text: &str, read: impl FnOnce(Node<'_, '_>) -> Read<T>) -> Read<T> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        read(Node::new(raw, &Path::Root))
    }

    #[test]
    fn a_field_answers_to_both_spellings_and_the_last_one_wins() {
        let name = |text| read(text, |node| node.object()?.text("messageId")).unwrap();
        assert_eq!(name(r#"{"message_id":"a"}"#).as_deref(), Some("a"));
        assert_eq!(name(r#"{"messageId":"a","message_id":"b"}"#).as_deref(), Some("b"));
        assert_eq!(name(r#"{"messageid":"a","messageId":null}"#), None);
    }

    #[test]
    fn integers_come_in_four_spellings() {
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
    fn a_violation_names_the_place() {
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
