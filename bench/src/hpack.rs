//! The part of HPACK (RFC 7541) that the load generator needs: the header fields of one request, and of responses the
//! two fields that are checked.
//!
//! The same request is sent repeatedly, so its header block is written in full once, which adds every field to the
//! server's dynamic table, and consists of a few indexes afterwards, as with any other client. Of a response only
//! `:status` and `grpc-status` are evaluated. A Huffman-coded string is compared in its coded form, which is unique,
//! so none is ever decoded; and since an index counts from the newest entry, it does not matter when the oldest are
//! evicted.

use std::collections::VecDeque;

/// Size of the static table; higher indexes refer to the dynamic table.
const STATIC_FIELDS: usize = 61;
/// An entry counts 32 bytes more than its strings, so the table with its default size of 4,096 bytes has at most this
/// many.
const MAX_ENTRIES: usize = 4096 / 32;
const GRPC_STATUS: &[u8] = b"grpc-status";
const GRPC_STATUS_HUFFMAN: &[u8] = &[0x9a, 0xca, 0xc8, 0xb2, 0x12, 0x34, 0xda, 0x8f];

/// Header blocks of a request that is sent repeatedly.
pub struct Request {
    /// Header block of the first request.
    pub first: Vec<u8>,
    /// Header block of every later request.
    pub again: Vec<u8>,
}

impl Request {
    /// A `POST` without TLS. No string may be longer than 126 bytes, so that its length fits into one byte.
    pub fn post(path: &str, authority: &str, others: &[(&str, &str)]) -> Self {
        const POST: u8 = 0x83;
        const HTTP: u8 = 0x86;
        const PATH: u8 = 0x44;
        const AUTHORITY: u8 = 0x41;
        const NEW_NAME: u8 = 0x40;
        let (mut first, mut again) = (vec![POST, HTTP, PATH], vec![POST, HTTP]);
        push_string(&mut first, path);
        first.push(AUTHORITY);
        push_string(&mut first, authority);
        for (name, value) in others {
            first.push(NEW_NAME);
            push_string(&mut first, name);
            push_string(&mut first, value);
        }
        let added = others.len() + 2;
        again.extend((1..=added).rev().map(|age| 0x80 | (STATIC_FIELDS + age) as u8));
        Self { first, again }
    }
}

fn push_string(into: &mut Vec<u8>, text: &str) {
    assert!(text.len() < 0x7f, "a header string is too long for a one-byte length");
    into.push(text.len() as u8);
    into.extend_from_slice(text.as_bytes());
}

/// The dynamic table of one connection.
#[derive(Default)]
pub struct Table {
    /// Newest first.
    entries: VecDeque<Field>,
}

/// The checked fields of a header block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// `:status` is 200.
    pub ok: bool,
    /// `grpc-status`.
    pub grpc_status: Option<u8>,
}

/// A header field, reduced to what is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    /// `:status: 200`.
    Good,
    GrpcStatus(u8),
    Other,
}

impl Table {
    /// Decodes a block; all blocks of a connection have to be decoded, in order. `None` if it is malformed.
    pub fn read(&mut self, block: &[u8]) -> Option<Block> {
        let mut rest = block;
        let mut result = Block::default();
        while let Some(&first) = rest.first() {
            let field = match first {
                0x80.. => self.field(number(&mut rest, 7)?)?,
                0x40.. => {
                    let field = self.literal(&mut rest, 6)?;
                    self.entries.push_front(field);
                    self.entries.truncate(MAX_ENTRIES);
                    field
                }
                // A table size update, which changes no index.
                0x20.. => {
                    number(&mut rest, 5)?;
                    continue;
                }
                _ => self.literal(&mut rest, 4)?,
            };
            match field {
                Field::Good => result.ok = true,
                Field::GrpcStatus(status) => result.grpc_status = Some(status),
                Field::Other => {}
            }
        }
        Some(result)
    }

    /// A field with a literal value, and a literal name where its index is 0.
    fn literal(&self, rest: &mut &[u8], index_bits: u32) -> Option<Field> {
        let is_status = match number(rest, index_bits)? {
            0 => matches!(string(rest)?, (false, GRPC_STATUS) | (true, GRPC_STATUS_HUFFMAN)),
            index => matches!(self.field(index)?, Field::GrpcStatus(_)),
        };
        let value = string(rest)?;
        if is_status { status(value).map(Field::GrpcStatus) } else { Some(Field::Other) }
    }

    fn field(&self, index: usize) -> Option<Field> {
        const STATUS_200: usize = 8;
        match index {
            0 => None,
            STATUS_200 => Some(Field::Good),
            1..=STATIC_FIELDS => Some(Field::Other),
            _ => self.entries.get(index - STATIC_FIELDS - 1).copied(),
        }
    }
}

/// An integer whose prefix is the last `bits` of a byte.
fn number(rest: &mut &[u8], bits: u32) -> Option<usize> {
    let mask = (1_usize << bits) - 1;
    let mut number = usize::from(take(rest)?) & mask;
    if number < mask {
        return Some(number);
    }
    for shift in [0, 7, 14] {
        let byte = take(rest)?;
        number += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A string, and whether it is Huffman-coded.
fn string<'a>(rest: &mut &'a [u8]) -> Option<(bool, &'a [u8])> {
    let huffman = rest.first()? & 0x80 != 0;
    let length = number(rest, 7)?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some((huffman, text))
}

fn take(rest: &mut &[u8]) -> Option<u8> {
    let (&first, after) = rest.split_first()?;
    *rest = after;
    Some(first)
}

/// A gRPC status as a number.
fn status((huffman, text): (bool, &[u8])) -> Option<u8> {
    if huffman {
        (0..=16).find(|status| digits_in_huffman(&status.to_string()) == text)
    } else {
        std::str::from_utf8(text).ok()?.parse().ok()
    }
}

fn digits_in_huffman(digits: &str) -> Vec<u8> {
    let codes = digits.bytes().map(|digit| match digit - b'0' {
        low @ 0..=2 => (u32::from(low), 5),
        high => (0x16 + u32::from(high), 6),
    });
    let (code, bits) =
        codes.fold((0_u32, 0_usize), |(code, bits), (next, length)| (code << length | next, bits + length));
    let bytes = bits.div_ceil(8);
    let padding = bytes * 8 - bits;
    let padded = code << padding | ((1 << padding) - 1);
    padded.to_be_bytes()[4 - bytes..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_found_in_every_encoding() {
        let added = [&[0x40, 11], GRPC_STATUS, &[1, b'0']].concat();
        let in_huffman = [&[0x40, 0x88], GRPC_STATUS_HUFFMAN, &[0x81, 0x07]].concat();
        for block in [added, in_huffman] {
            let mut table = Table::default();
            let ok = Some(Block { ok: false, grpc_status: Some(0) });
            assert_eq!(table.read(&block), ok);
            assert_eq!(table.read(&[0x80 | 62]), ok, "the entry by its index");
            assert_eq!(table.read(&[0x0f, 62 - 15, 2, b'1', b'3']).unwrap().grpc_status, Some(13));
            assert_eq!(table.read(&[0x40, 1, b'x', 1, b'y']), Some(Block::default()));
            assert_eq!(table.read(&[0x80 | 63]), ok, "a newer entry comes before it");
        }
        assert_eq!(Table::default().read(&[0x88]), Some(Block { ok: true, grpc_status: None }));
    }

    #[test]
    fn digits_are_coded_as_in_the_rfc() {
        // RFC 7541 C.6.1 encodes 302 as 64 02; appendix B has each digit.
        assert_eq!(digits_in_huffman("302"), [0x64, 0x02]);
        assert_eq!(digits_in_huffman("16"), [0b0000_1011, 0b1001_1111][..].to_vec());
    }

    #[test]
    fn malformed_block_is_rejected() {
        for block in [&[0x80][..], &[0x80 | 62], &[0x40, 5, b'x'], &[0xff, 0xff, 0xff, 0xff], &[0x40]] {
            assert_eq!(Table::default().read(block), None, "{block:x?}");
        }
    }
}
