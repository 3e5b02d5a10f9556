//! The protobuf wire format: fields and payloads without knowledge of the message type.
//!
//! It has three users: values are converted to text without an intermediate tree ([`super::values`]); the
//! elements of a request are counted and its strings measured before decoding, because two bytes on the wire
//! can become hundreds in memory; and the invalid field of a message is located ([`super::fault`]).

use crate::json::read::{MAX_TEXT_BYTES, MAX_TEXTS, MAX_TEXTS_BYTES, Path, Read};

use super::{read::expected, values};

/// The payload of a field.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    /// A 32-bit field or a group, which no user interprets.
    Other,
}

/// The bytes are not valid wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WireError;

/// Iterates over the fields of a message: number and payload.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of the first field with this number.
    pub(super) fn find_bytes(mut self, wanted: u32) -> Option<&'a [u8]> {
        while !self.is_empty() {
            match self.field().ok()? {
                (number, Payload::Bytes(bytes)) if number == wanted => return Some(bytes),
                _ => {}
            }
        }
        None
    }

    fn field(&mut self) -> Result<(u32, Payload<'a>), WireError> {
        let (number, kind) = self.key()?;
        Ok((number, self.payload(kind, number)?))
    }

    /// Reads the number of the next field and its wire type.
    pub(super) fn key(&mut self) -> Result<(u32, u8), WireError> {
        let key = u32::try_from(self.varint()?).map_err(|_| WireError)?;
        let (number, kind) = (key >> 3, (key & 7) as u8);
        if number == 0 { Err(WireError) } else { Ok((number, kind)) }
    }

    /// Reads the payload of a field with this wire type and number.
    pub(super) fn payload(&mut self, kind: u8, number: u32) -> Result<Payload<'a>, WireError> {
        Ok(match kind {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(*self.take(8)?.first_chunk().ok_or(WireError)?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireError)?;
                Payload::Bytes(self.take(length)?)
            }
            3 => self.skip_group(number)?,
            5 => self.take(4).map(|_| Payload::Other)?,
            _ => return Err(WireError),
        })
    }

    /// Skips a group and the groups nested in it, at any depth.
    fn skip_group(&mut self, number: u32) -> Result<Payload<'a>, WireError> {
        let mut open = vec![number];
        while let Some(&last) = open.last() {
            match self.key()? {
                (number, 3) => open.push(number),
                (number, 4) if number == last => {
                    open.pop();
                }
                (number, kind) => {
                    self.payload(kind, number)?;
                }
            }
        }
        Ok(Payload::Other)
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(WireError)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireError)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(WireError)?;
        self.0 = rest;
        Ok(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Payload<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// Size limit of one field of a request.
pub(super) enum Bound {
    /// A string that is not content.
    Text { field: u32, name: &'static str },
    /// A list of strings that are not content; `things` names them in violations.
    Texts { field: u32, name: &'static str, things: &'static str },
    /// At most `max` of these messages, with their own limits. A list within them would be counted over all
    /// of them together, so none may contain one.
    Each { field: u32, name: &'static str, max: usize, things: &'static str, bounds: &'static [Bound] },
    /// A `Struct` with limited nesting.
    Object { field: u32, name: &'static str },
    /// A `Value` with limited nesting.
    Value { field: u32, name: &'static str },
    /// A message with its own limits. On the wire it may be split into several occurrences, whose elements
    /// are counted together.
    Nested { field: u32, name: &'static str, bounds: &'static [Bound] },
}

/// Checks the limits before anything is decoded. Other errors in the bytes are not reported here.
pub(super) fn check(message: &[u8], bounds: &'static [Bound]) -> Read<()> {
    let mut seen = Vec::new();
    check_nested(message, bounds, &Path::Root, &mut seen)
}

/// Counters of a field that may occur several times.
struct Occurrences {
    /// Compared by address, so that all occurrences of a split message are counted together.
    bound: &'static Bound,
    count: usize,
    bytes: usize,
}

fn check_nested(
    message: &[u8],
    bounds: &'static [Bound],
    path: &Path<'_>,
    seen: &mut Vec<Occurrences>,
) -> Read<()> {
    for field in Fields::new(message) {
        // Decoding the message fails at the same byte and reports it.
        let Ok((number, payload)) = field else { return Ok(()) };
        let Some(bound) = bounds.iter().find(|bound| bound.field() == number) else { continue };
        let payload_bytes = match payload {
            Payload::Bytes(payload_bytes) => payload_bytes,
            _ => &[],
        };
        match bound {
            Bound::Text { name, .. } => check_text(payload_bytes, &Path::Field(path, name))?,
            Bound::Object { name, .. } => {
                values::check_object(payload_bytes)
                    .map_err(|problem| expected(&Path::Field(path, name), &problem))?;
            }
            Bound::Value { name, .. } => {
                values::check_value(payload_bytes)
                    .map_err(|problem| expected(&Path::Field(path, name), &problem))?;
            }
            Bound::Texts { name, things, .. } => {
                let place = Path::Field(path, name);
                let (count, bytes) = add(bound, payload_bytes.len(), seen);
                if count > MAX_TEXTS {
                    return Err(expected(&place, &format!("at most {MAX_TEXTS} {things}")));
                }
                if bytes > MAX_TEXTS_BYTES {
                    return Err(expected(
                        &place,
                        &format!("{things} of at most {MAX_TEXTS_BYTES} bytes in all"),
                    ));
                }
                check_text(payload_bytes, &Path::Index(&place, count - 1))?;
            }
            Bound::Each { name, max, things, bounds, .. } => {
                let place = Path::Field(path, name);
                let (count, _) = add(bound, payload_bytes.len(), seen);
                if count > *max {
                    return Err(expected(&place, &format!("at most {max} {things}")));
                }
                check_nested(payload_bytes, bounds, &Path::Index(&place, count - 1), seen)?;
            }
            Bound::Nested { name, bounds, .. } => {
                check_nested(payload_bytes, bounds, &Path::Field(path, name), seen)?;
            }
        }
    }
    Ok(())
}

fn check_text(text: &[u8], place: &Path<'_>) -> Read<()> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(expected(place, &format!("at most {MAX_TEXT_BYTES} bytes")));
    }
    Ok(())
}

/// Adds one occurrence of this length; returns count and total length.
fn add(bound: &'static Bound, length: usize, seen: &mut Vec<Occurrences>) -> (usize, usize) {
    if let Some(known) = seen.iter_mut().find(|known| std::ptr::eq(known.bound, bound)) {
        known.count += 1;
        known.bytes += length;
        return (known.count, known.bytes);
    }
    seen.push(Occurrences { bound, count: 1, bytes: length });
    (1, length)
}

impl Bound {
    fn field(&self) -> u32 {
        match self {
            Self::Text { field, .. }
            | Self::Texts { field, .. }
            | Self::Object { field, .. }
            | Self::Value { field, .. }
            | Self::Each { field, .. }
            | Self::Nested { field, .. } => *field,
        }
    }
}
