//! A value of any shape as it is on the wire: `google.protobuf.Struct` or `Value`, not looked into.
//!
//! Reading keeps the bytes; whoever knows the place of the value turns them into JSON text and can name the field
//! when they are wrong. Writing is handed the bytes without the lengths that nested messages begin with: those are
//! known last and stand beside, so that nothing is moved however deep the value.

use prost::{
    DecodeError, Message,
    bytes::{Buf, BufMut},
    encoding::{
        DecodeContext, WireType, bytes, decode_varint, encode_key, encode_varint, encoded_len_varint,
        skip_field,
    },
};

/// The fields of the message, and the lengths that are still to be put between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    /// Where a length goes, in order, and which.
    lengths: Vec<(usize, usize)>,
    /// How many bytes the lengths take.
    extra: usize,
}

impl Packed {
    /// The bytes of a value that was read.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes so far, to be added to.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Begins a nested message.
    pub(super) fn open(&mut self) -> Open {
        self.lengths.push((self.bytes.len(), 0));
        Open { place: self.lengths.len() - 1, before: self.bytes.len() + self.extra }
    }

    /// Ends the nested message: its length is known now.
    pub(super) fn close(&mut self, open: &Open) {
        let length = self.bytes.len() + self.extra - open.before;
        if let Some(mark) = self.lengths.get_mut(open.place) {
            mark.1 = length;
        }
        self.extra += encoded_len_varint(length as u64);
    }
}

/// A nested message that is being written.
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

    /// Pieces of one message are its fields one after the other, so merging is appending.
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
            // No value is a group or four bytes. That one stood there is kept: whoever knows the fields decides
            // whether it matters.
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
