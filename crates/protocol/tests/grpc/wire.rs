//! Hand-encoded messages, field by field.

/// A length-delimited field: a string, bytes or a message.
pub(crate) fn bytes(number: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    [key(number, 2), varint(payload.len() as u64), payload.to_vec()].concat()
}

/// A varint field: a number, a flag or an enum.
pub(crate) fn int(number: u32, value: i64) -> Vec<u8> {
    [key(number, 0), varint(value.cast_unsigned())].concat()
}

/// A double field.
pub(crate) fn double(number: u32, value: f64) -> Vec<u8> {
    [key(number, 1), value.to_le_bytes().to_vec()].concat()
}

pub(crate) fn key(number: u32, kind: u8) -> Vec<u8> {
    varint(u64::from(number << 3 | u32::from(kind)))
}

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return out;
        }
        out.push(low | 0x80);
    }
}
