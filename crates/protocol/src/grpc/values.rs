//! Converts JSON text to `google.protobuf.Struct` and `Value` and back, without an intermediate tree.
//!
//! Every protobuf number is a double. An integral double is written as an integer; a JSON number out of range
//! is clamped to the nearest finite double, because a protobuf value has no other number type. The size
//! limits are those of JSON.
//!
//! Protobuf decoders reject messages of more than 100 levels. A value that is nested deeper is written as a
//! string with its JSON text at the point where it becomes too deep.

use std::collections::HashSet;

use crate::{
    Json,
    json::{self, MAX_DEPTH, MAX_KEPT_DEPTH, MAX_NODES, write::Writer},
};

use super::{
    packed::Packed,
    wire::{Fields, Payload, WireError},
};

/// The error describes what was expected.
type Reading<T> = Result<T, String>;

/// Reads a `Struct`.
pub(super) fn object(packed: &Packed) -> Reading<Json> {
    read(packed, |reader, bytes| {
        reader.count()?;
        reader.members(bytes, 1)
    })
}

/// Reads a `Value`.
pub(super) fn value(packed: &Packed) -> Reading<Json> {
    read(packed, |reader, bytes| reader.value(bytes, 0))
}

/// Writes a `Struct`; a value that is not an object becomes its member `value`.
pub(super) fn pack_object(json: &Json) -> Packed {
    let mut packer = Packer::of(json);
    if json.is_object() {
        packer.members();
    } else {
        packer.member("value");
    }
    packer.packed
}

/// Writes a `Value`.
pub(super) fn pack_value(json: &Json) -> Packed {
    let mut packer = Packer::of(json);
    packer.value();
    packer.packed
}

/// Checks the nesting depth of a `Struct` in a request.
pub(super) fn check_object(bytes: &[u8]) -> Reading<()> {
    check_depth(&Kind::Object(bytes), MAX_DEPTH)
}

/// Checks the nesting depth of a `Value` in a request. Other errors are found by its reader.
pub(super) fn check_value(bytes: &[u8]) -> Reading<()> {
    kind(bytes).map_or(Ok(()), |value| check_depth(&value, MAX_DEPTH))
}

/// Checks that at most `left` objects and lists are nested.
fn check_depth(value: &Kind<'_>, left: usize) -> Reading<()> {
    let (Kind::Object(bytes) | Kind::List(bytes)) = *value else { return Ok(()) };
    if left == 0 {
        return Err(too_deep(MAX_DEPTH));
    }
    for inside in nested(bytes).flatten() {
        let inside = match value {
            Kind::Object(_) => entry(inside).unwrap_or_default().1,
            _ => inside,
        };
        if let Ok(value) = kind(inside) {
            check_depth(&value, left - 1)?;
        }
    }
    Ok(())
}

fn read(packed: &Packed, read: impl FnOnce(&mut Reader, &[u8]) -> Reading<()>) -> Reading<Json> {
    let bytes = packed.bytes();
    let mut reader = Reader { writer: Writer::append_to(Vec::with_capacity(bytes.len())), nodes: 0 };
    read(&mut reader, bytes)?;
    let text = String::from_utf8(reader.writer.finish()).map_err(|_| UTF8.to_owned())?;
    Ok(Json::from_checked(text))
}

const UTF8: &str = "UTF-8 text";

impl From<WireError> for String {
    fn from(_: WireError) -> Self {
        "a google.protobuf.Value".to_owned()
    }
}

/// The variants of `Value`; if several fields of the oneof are present, the last one wins.
enum Kind<'a> {
    Null,
    Number(f64),
    Text(&'a [u8]),
    Bool(bool),
    Object(&'a [u8]),
    List(&'a [u8]),
}

struct Reader {
    writer: Writer,
    nodes: usize,
}

impl Reader {
    fn value(&mut self, bytes: &[u8], depth: usize) -> Reading<()> {
        self.count()?;
        match kind(bytes)? {
            Kind::Null => self.writer.raw("null"),
            Kind::Number(number) => self.number(number)?,
            Kind::Text(bytes) => self.writer.string(text(bytes)?),
            Kind::Bool(value) => self.writer.boolean(value),
            Kind::Object(bytes) => self.members(bytes, depth + 1)?,
            Kind::List(bytes) => self.elements(bytes, depth + 1)?,
        }
        Ok(())
    }

    fn members(&mut self, bytes: &[u8], depth: usize) -> Reading<()> {
        check_max_depth(depth)?;
        self.writer.open(b'{');
        for (name, value) in entries(bytes)? {
            self.writer.key(text(name)?);
            self.value(value, depth)?;
        }
        self.writer.close(b'}');
        Ok(())
    }

    fn elements(&mut self, bytes: &[u8], depth: usize) -> Reading<()> {
        check_max_depth(depth)?;
        self.writer.open(b'[');
        for value in nested(bytes) {
            self.value(value?, depth)?;
        }
        self.writer.close(b']');
        Ok(())
    }

    fn number(&mut self, number: f64) -> Reading<()> {
        // The range in which integral doubles fit an i64.
        const INTEGERS: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
        if !number.is_finite() {
            return Err("a finite number".to_owned());
        }
        if number == 0.0 && number.is_sign_negative() {
            self.writer.raw("-0");
        } else if number.fract() == 0.0 && INTEGERS.contains(&number) {
            #[expect(clippy::cast_possible_truncation, reason = "integral and within range")]
            self.writer.int(number as i64);
        } else {
            let text = serde_json::to_string(&number).map_err(|error| error.to_string())?;
            self.writer.raw(&text);
        }
        Ok(())
    }

    fn count(&mut self) -> Reading<()> {
        self.nodes += 1;
        if self.nodes > MAX_NODES { Err(too_many()) } else { Ok(()) }
    }
}

fn too_many() -> String {
    format!("a value of at most {MAX_NODES} nodes")
}

/// The members of an object. Map keys are unique: the last duplicate wins.
fn entries(bytes: &[u8]) -> Reading<Vec<(&[u8], &[u8])>> {
    let mut entries: Vec<(&[u8], &[u8])> = Vec::new();
    for member in nested(bytes) {
        let member = entry(member?)?;
        if entries.len() == MAX_NODES {
            return Err(too_many());
        }
        entries.push(member);
    }
    // Most objects are small and have no duplicates.
    const FEW: usize = 8;
    let twice = if entries.len() <= FEW {
        (1..entries.len()).any(|at| entries[..at].iter().any(|(name, _)| *name == entries[at].0))
    } else {
        entries.iter().map(|(name, _)| name).collect::<HashSet<_>>().len() < entries.len()
    };
    if twice {
        let mut seen = HashSet::new();
        entries.reverse();
        entries.retain(|(name, _)| seen.insert(*name));
        entries.reverse();
    }
    Ok(entries)
}

/// Name and value of an object entry.
fn entry(bytes: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let (mut name, mut value): (&[u8], &[u8]) = (&[], &[]);
    for field in Fields::new(bytes) {
        match field? {
            (1, Payload::Bytes(bytes)) => name = bytes,
            (2, Payload::Bytes(bytes)) => value = bytes,
            (1 | 2, _) => return Err(WireError),
            _ => {}
        }
    }
    Ok((name, value))
}

/// The messages in field 1: the entries of an object or the elements of a list.
fn nested(bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], WireError>> {
    Fields::new(bytes).filter_map(|field| match field {
        Ok((1, Payload::Bytes(bytes))) => Some(Ok(bytes)),
        Ok((1, _)) => Some(Err(WireError)),
        Ok(_) => None,
        Err(malformed) => Some(Err(malformed)),
    })
}

/// The variant of a value. Without one it is null, as in other implementations.
fn kind(bytes: &[u8]) -> Result<Kind<'_>, WireError> {
    let mut kind = Kind::Null;
    for field in Fields::new(bytes) {
        kind = match field? {
            (1, Payload::Varint(_)) => Kind::Null,
            (2, Payload::Fixed64(bytes)) => Kind::Number(f64::from_le_bytes(bytes)),
            (3, Payload::Bytes(bytes)) => Kind::Text(bytes),
            (4, Payload::Varint(value)) => Kind::Bool(value != 0),
            (5, Payload::Bytes(bytes)) => Kind::Object(bytes),
            (6, Payload::Bytes(bytes)) => Kind::List(bytes),
            (1..=6, _) => return Err(WireError),
            _ => kind,
        };
    }
    Ok(kind)
}

fn check_max_depth(depth: usize) -> Reading<()> {
    if depth > MAX_KEPT_DEPTH { Err(too_deep(MAX_KEPT_DEPTH)) } else { Ok(()) }
}

fn too_deep(max: usize) -> String {
    format!("a value nested at most {max} deep")
}

fn text(bytes: &[u8]) -> Reading<&str> {
    std::str::from_utf8(bytes).map_err(|_| UTF8.to_owned())
}

/// Maximum number of message levels a value may add: those of the deepest object a request may contain. With
/// the enclosing messages this stays below the 100 levels that decoders allow.
const MAX_LEVELS: usize = MAX_DEPTH * OBJECT_LEVELS;
/// `Struct`, its entry, and the entry's value.
const OBJECT_LEVELS: usize = 3;
/// `ListValue` and its element.
const LIST_LEVELS: usize = 2;

/// Encodes compact, valid JSON text, which is what [`Json`] holds.
struct Packer<'a> {
    text: &'a [u8],
    packed: Packed,
    /// Number of message levels around the next value.
    levels: usize,
}

impl<'a> Packer<'a> {
    fn of(json: &'a Json) -> Self {
        Self { text: json.as_str().as_bytes(), packed: Packed::default(), levels: 0 }
    }

    fn value(&mut self) {
        match self.text.first() {
            Some(b'{') if self.levels + OBJECT_LEVELS <= MAX_LEVELS => self.nest(5, Self::members),
            Some(b'[') if self.levels + LIST_LEVELS <= MAX_LEVELS => self.nest(6, Self::elements),
            Some(b'{' | b'[') => {
                let (text, rest) = self.text.split_at(json::value_end(self.text));
                self.text = rest;
                self.packed.out().push(3 << 3 | 2);
                self.nest_bytes(text);
            }
            Some(b'"') => self.string(3),
            Some(b't' | b'f') => {
                let value = self.scalar() == b"true";
                self.packed.out().extend([4 << 3, u8::from(value)]);
            }
            Some(b'n') => {
                self.scalar();
                self.packed.out().extend([1 << 3, 0]);
            }
            _ => {
                let number = std::str::from_utf8(self.scalar()).ok().and_then(|text| text.parse().ok());
                let number: f64 = number.unwrap_or_default();
                let number = number.clamp(f64::MIN, f64::MAX);
                self.packed.out().push(2 << 3 | 1);
                self.packed.out().extend(number.to_le_bytes());
            }
        }
    }

    /// Encodes the members of the object that starts here.
    fn members(&mut self) {
        self.each(b'}', OBJECT_LEVELS, |packer| {
            packer.nest(1, |packer| {
                packer.string(1);
                packer.skip();
                packer.nest(2, Self::value);
            });
        });
    }

    fn elements(&mut self) {
        self.each(b']', LIST_LEVELS, |packer| packer.nest(1, Self::value));
    }

    /// Encodes the value that starts here as the only member of an object.
    fn member(&mut self, name: &str) {
        self.levels += OBJECT_LEVELS;
        self.nest(1, |packer| {
            packer.packed.out().push(1 << 3 | 2);
            packer.nest_bytes(name.as_bytes());
            packer.nest(2, Self::value);
        });
    }

    /// Visits each element between the bracket that opens here and its closing bracket, `levels` deeper.
    fn each(&mut self, close: u8, levels: usize, thing: impl FnMut(&mut Self)) {
        self.levels += levels;
        self.each_here(close, thing);
        self.levels -= levels;
    }

    fn each_here(&mut self, close: u8, mut thing: impl FnMut(&mut Self)) {
        self.skip();
        while let Some(&byte) = self.text.first() {
            if byte == close {
                return self.skip();
            }
            if byte == b',' {
                self.skip();
            }
            let before = self.text.len();
            thing(self);
            if self.text.len() == before {
                return;
            }
        }
    }

    fn nest(&mut self, field: u8, inside: impl FnOnce(&mut Self)) {
        self.packed.out().push(field << 3 | 2);
        let open = self.packed.open();
        inside(self);
        self.packed.close(&open);
    }

    fn nest_bytes(&mut self, bytes: &[u8]) {
        let open = self.packed.open();
        self.packed.out().extend_from_slice(bytes);
        self.packed.close(&open);
    }

    /// Encodes the string that starts here.
    fn string(&mut self, field: u8) {
        self.packed.out().push(field << 3 | 2);
        self.skip();
        let (mut end, mut plain) = (0, true);
        while let Some(byte) = self.text.get(end) {
            match byte {
                b'"' => break,
                b'\\' => {
                    plain = false;
                    end += 2;
                }
                _ => end += 1,
            }
        }
        let (string, rest) = self.text.split_at_checked(end).unwrap_or((self.text, &[]));
        self.text = rest;
        self.skip();
        if plain {
            self.nest_bytes(string);
        } else {
            self.nest_bytes(unescape(string).as_bytes());
        }
    }

    /// Consumes a number, a boolean or null.
    fn scalar(&mut self) -> &'a [u8] {
        let end = self.text.iter().position(|byte| matches!(byte, b',' | b']' | b'}'));
        let (scalar, rest) = self.text.split_at(end.unwrap_or(self.text.len()));
        self.text = rest;
        scalar
    }

    /// Skips one byte.
    fn skip(&mut self) {
        self.text = self.text.get(1..).unwrap_or_default();
    }
}

/// The text of a JSON string. A lone surrogate is valid JSON but not text: it becomes U+FFFD.
fn unescape(string: &[u8]) -> String {
    let mut out = Vec::with_capacity(string.len());
    let mut rest = string;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some((&escape, after)) = rest.split_first() else { break };
        rest = after;
        let character = match escape {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => unescape_unicode(&mut rest),
            other => char::from(other),
        };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Decodes `\uXXXX`, whose digits come next, and a following low surrogate if needed.
fn unescape_unicode(rest: &mut &[u8]) -> char {
    let digits = |text: &[u8]| u32::from_str_radix(std::str::from_utf8(text.get(..4)?).ok()?, 16).ok();
    let first = digits(rest).unwrap_or_default();
    *rest = rest.get(4..).unwrap_or_default();
    let second = rest.strip_prefix(b"\\u").and_then(digits).filter(|low| (0xdc00..0xe000).contains(low));
    match (first, second) {
        (0xd800..0xdc00, Some(second)) => {
            *rest = rest.get(6..).unwrap_or_default();
            char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
        }
        _ => char::from_u32(first),
    }
    .unwrap_or(char::REPLACEMENT_CHARACTER)
}
