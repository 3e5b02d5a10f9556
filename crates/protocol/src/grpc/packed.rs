//! A `google.protobuf.Struct` or `Value` in its encoded form.
//!
//! Decoding keeps the bytes; the caller, which knows the path of the value, converts them to JSON text and
//! can name the field of a violation. When encoding, the length prefixes of nested messages are known last;
//! they are kept in a separate list, so that no bytes are moved however deep the value is.

use prost::{
    DecodeError, Message,
    bytes::{Buf, BufMut},
    encoding::{
        DecodeContext, WireType, bytes, decode_varint, encode_key, encode_varint, encoded_len_varint,
        skip_field,
    },
};

/// The encoded fields, and the length prefixes that are inserted between them on output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    /// Offset and value of each length prefix, in order.
    lengths: Vec<(usize, usize)>,
    /// Number of bytes the length prefixes take.
    extra: usize,
}

impl Packed {
    /// The bytes of a decoded value.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The output buffer.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Starts a nested message.
    pub(super) fn open(&mut self) -> Open {
        self.lengths.push((self.bytes.len(), 0));
        Open { place: self.lengths.len() - 1, before: self.bytes.len() + self.extra }
    }

    /// Ends a nested message and sets its length.
    pub(super) fn close(&mut self, open: &Open) {
        let length = self.bytes.len() + self.extra - open.before;
        if let Some(mark) = self.lengths.get_mut(open.place) {
            mark.1 = length;
        }
        self.extra += encoded_len_varint(length as u64);
    }
}

/// A nested message that has not ended.
pub(super) struct Open {
    place: usize,
    before: usize,
}

impl Message for Packed {
    fn encode_raw(&self, out: &mut impl BufMut) {
        let mut written = 0;
        for &(at, length) in &self.lengths {
            out.put_slice(&self.bytes[written..at]);
            encode_varint(length as u64, out);
            written = at;
        }
        out.put_slice(&self.bytes[written..]);
    }

    /// Protobuf merges repeated occurrences of a message by concatenating their fields.
    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        from: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match wire_type {
            WireType::Varint => {
                let value = decode_varint(from)?;
                encode_key(tag, wire_type, &mut self.bytes);
                encode_varint(value, &mut self.bytes);
            }
            WireType::LengthDelimited => {
                let mut payload = Vec::new();
                bytes::merge(wire_type, &mut payload, from, ctx)?;
                bytes::encode(tag, &payload, &mut self.bytes);
            }
            WireType::SixtyFourBit => {
                let mut payload = 0;
                prost::encoding::fixed64::merge(wire_type, &mut payload, from, ctx)?;
                prost::encoding::fixed64::encode(tag, &payload, &mut self.bytes);
            }
            // Neither groups nor 32-bit fields occur in a value. The occurrence is recorded as a zero, and
            // the reader of the fields decides whether it is an error.
            WireType::StartGroup | WireType::EndGroup | WireType::ThirtyTwoBit => {
                skip_field(wire_type, tag, from, ctx)?;
                prost::encoding::fixed32::encode(tag, &0, &mut self.bytes);
            }
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        self.bytes.len() + self.extra
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}
