//! The protobuf wire format, encoded by hand: fields as bytes, valid or not, and decoding of response fields.

pub(crate) const VARINT: u8 = 0;
pub(crate) const FIXED64: u8 = 1;
pub(crate) const LENGTH: u8 = 2;
pub(crate) const GROUP: u8 = 3;
pub(crate) const GROUP_END: u8 = 4;
pub(crate) const FIXED32: u8 = 5;

/// A length-delimited field: a string, bytes, or a message.
pub(crate) fn bytes(number: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    [key(number, LENGTH), varint(payload.len() as u64), payload.to_vec()].concat()
}

/// A varint field: a number, a bool, or an enum value.
pub(crate) fn int(number: u32, value: i64) -> Vec<u8> {
    [key(number, VARINT), varint(value.cast_unsigned())].concat()
}

/// A field with a double.
pub(crate) fn double(number: u32, value: f64) -> Vec<u8> {
    [key(number, FIXED64), value.to_le_bytes().to_vec()].concat()
}

/// A group and its content.
pub(crate) fn group(number: u32, inside: &[u8]) -> Vec<u8> {
    [key(number, GROUP), inside.to_vec(), key(number, GROUP_END)].concat()
}

/// The key before a payload.
pub(crate) fn key(number: u32, kind: u8) -> Vec<u8> {
    varint(u64::from(number) << 3 | u64::from(kind))
}

/// The shortest encoding of a number.
pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
    out
}

/// A message with its prefix.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0], &length.to_be_bytes()[..], message].concat()
}

/// The payload of a response field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message; `None` if the bytes are invalid or have types that responses do not use.
pub(crate) fn fields(mut message: &[u8]) -> Option<Vec<(u64, Payload<'_>)>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = take_varint(&mut message)?;
        let payload = match (key & 7) as u8 {
            VARINT => Payload::Number(take_varint(&mut message)?),
            LENGTH => {
                let length = usize::try_from(take_varint(&mut message)?).ok()?;
                let (payload, rest) = message.split_at_checked(length)?;
                message = rest;
                Payload::Bytes(payload)
            }
            _ => return None,
        };
        fields.push((key >> 3, payload));
    }
    Some(fields)
}

fn take_varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
