//! The wire format by itself: fields and their payloads, without knowing the message.
//!
//! Three readers need that: values of any shape are turned into text without a tree between ([`super::values`]), the
//! elements of a request are counted and its strings measured before any is kept, because two bytes on the wire can
//! become hundreds in memory, and what is wrong with a message is looked for field by field ([`super::fault`]).

use crate::json::read::{MAX_TEXT_BYTES, MAX_TEXTS, MAX_TEXTS_BYTES, Path, Read};

use super::{read::expected, values};

/// The payload of a field.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    /// What nobody here looks into: four bytes, or a group.
    Other,
}

/// Bytes that are not in the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The fields of a message one by one: number and payload.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of the first field of this number.
    pub(super) fn find_bytes(mut self, wanted: u32) -> Option<&'a [u8]> {
        while !self.is_empty() {
            match self.field().ok()? {
                (number, Payload::Bytes(bytes)) if number == wanted => return Some(bytes),
                _ => {}
            }
        }
        None
    }

    fn field(&mut self) -> Result<(u32, Payload<'a>), Malformed> {
        let (number, kind) = self.key()?;
        Ok((number, self.payload(kind, number)?))
    }

    /// The number of the next field and how the wire calls its kind.
    pub(super) fn key(&mut self) -> Result<(u32, u8), Malformed> {
        let key = u32::try_from(self.varint()?).map_err(|_| Malformed)?;
        let (number, kind) = (key >> 3, (key & 7) as u8);
        if number == 0 { Err(Malformed) } else { Ok((number, kind)) }
    }

    /// What stands behind the key of a field of this kind and number.
    pub(super) fn payload(&mut self, kind: u8, number: u32) -> Result<Payload<'a>, Malformed> {
        Ok(match kind {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(*self.take(8)?.first_chunk().ok_or(Malformed)?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Payload::Bytes(self.take(length)?)
            }
            3 => self.skip_group(number)?,
            5 => self.take(4).map(|_| Payload::Other)?,
            _ => return Err(Malformed),
        })
    }

    /// Goes past a group and the groups in it, however deep.
    fn skip_group(&mut self, number: u32) -> Result<Payload<'a>, Malformed> {
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

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(Malformed)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Payload<'a>), Malformed>;

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

/// How much a request may make us keep at a field.
pub(super) enum Bound {
    /// A string that is no content.
    Text { field: u32, name: &'static str },
    /// Strings that are no content: a list of these things.
    Texts { field: u32, name: &'static str, things: &'static str },
    /// At most so many of these messages, with bounds of their own. A list in them would count over all of them
    /// together: none has one.
    Each { field: u32, name: &'static str, max: usize, things: &'static str, bounds: &'static [Bound] },
    /// A `Struct`, which nests no deeper than it may.
    Object { field: u32, name: &'static str },
    /// A `Value`, which nests no deeper than it may.
    Value { field: u32, name: &'static str },
    /// A message with bounds of its own. On the wire it may come in pieces, whose elements count together.
    Inside { field: u32, name: &'static str, bounds: &'static [Bound] },
}

/// Counts before anything is kept. Whether the bytes are the message they should be is not looked at.
pub(super) fn check(message: &[u8], bounds: &'static [Bound]) -> Read<()> {
    let mut seen = Vec::new();
    check_inside(message, bounds, &Path::Root, &mut seen)
}

/// What has come at a field that may stand several times.
struct Seen {
    /// Known by its address, so that the pieces of a message count together wherever they stand.
    bound: &'static Bound,
    count: usize,
    bytes: usize,
}

fn check_inside(message: &[u8], bounds: &'static [Bound], path: &Path<'_>, seen: &mut Vec<Seen>) -> Read<()> {
    for field in Fields::new(message) {
        // Who decodes the message stops here too, and says why.
        let Ok((number, payload)) = field else { return Ok(()) };
        let Some(bound) = bounds.iter().find(|bound| bound.field() == number) else { continue };
        let inside = match payload {
            Payload::Bytes(inside) => inside,
            _ => &[],
        };
        match bound {
            Bound::Text { name, .. } => check_text(inside, &Path::Field(path, name))?,
            Bound::Object { name, .. } => {
                values::check_object(inside)
                    .map_err(|problem| expected(&Path::Field(path, name), &problem))?;
            }
            Bound::Value { name, .. } => {
                values::check_value(inside)
                    .map_err(|problem| expected(&Path::Field(path, name), &problem))?;
            }
            Bound::Texts { name, things, .. } => {
                let place = Path::Field(path, name);
                let (count, bytes) = add(bound, inside.len(), seen);
                if count > MAX_TEXTS {
                    return Err(expected(&place, &format!("at most {MAX_TEXTS} {things}")));
                }
                if bytes > MAX_TEXTS_BYTES {
                    return Err(expected(
                        &place,
                        &format!("{things} of at most {MAX_TEXTS_BYTES} bytes in all"),
                    ));
                }
                check_text(inside, &Path::Index(&place, count - 1))?;
            }
            Bound::Each { name, max, things, bounds, .. } => {
                let place = Path::Field(path, name);
                let (count, _) = add(bound, inside.len(), seen);
                if count > *max {
                    return Err(expected(&place, &format!("at most {max} {things}")));
                }
                check_inside(inside, bounds, &Path::Index(&place, count - 1), seen)?;
            }
            Bound::Inside { name, bounds, .. } => {
                check_inside(inside, bounds, &Path::Field(path, name), seen)?;
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

/// Counts one more of this length; how many there are, and how long they are together.
fn add(bound: &'static Bound, length: usize, seen: &mut Vec<Seen>) -> (usize, usize) {
    if let Some(known) = seen.iter_mut().find(|known| std::ptr::eq(known.bound, bound)) {
        known.count += 1;
        known.bytes += length;
        return (known.count, known.bytes);
    }
    seen.push(Seen { bound, count: 1, bytes: length });
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
            | Self::Inside { field, .. } => *field,
        }
    }
}
