//! As much of HPACK (RFC 7541) as a load needs: one request's header fields, and in answers the two that matter.
//!
//! The same request goes out again and again, so its header block is written in full once, entering every field
//! into the server's table, and is a few indexes ever after, as with any other client.
//! Of an answer only `:status` and `grpc-status` are looked at. A string coded with Huffman's code is compared in
//! that code, which has one form only, so none is ever decoded; and since an index counts from the newest entry,
//! it does not matter when the oldest go.

use std::collections::VecDeque;

/// The fields that the static table has; what follows them is ours or the server's.
const STATIC_FIELDS: usize = 61;
/// An entry counts 32 bytes more than its strings, so the table of 4,096 bytes that nobody changes has no more.
const MAX_ENTRIES: usize = 4096 / 32;
const GRPC_STATUS: &[u8] = b"grpc-status";
const GRPC_STATUS_HUFFMAN: &[u8] = &[0x9a, 0xca, 0xc8, 0xb2, 0x12, 0x34, 0xda, 0x8f];

/// Header blocks of a request that is made over and over.
pub struct Request {
    /// The first time.
    pub first: Vec<u8>,
    /// Every other time.
    pub again: Vec<u8>,
}

impl Request {
    /// A `POST` without TLS. No string may be longer than 126 bytes, which then has its length in one byte.
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
        let entered = others.len() + 2;
        again.extend((1..=entered).rev().map(|age| 0x80 | (STATIC_FIELDS + age) as u8));
        Self { first, again }
    }
}

fn push_string(into: &mut Vec<u8>, text: &str) {
    assert!(text.len() < 0x7f, "a header of the load is longer than its length field");
    into.push(text.len() as u8);
    into.extend_from_slice(text.as_bytes());
}

/// What the header blocks of one connection have entered so far.
#[derive(Default)]
pub struct Table {
    /// The newest first.
    entries: VecDeque<Field>,
}

/// What a block says, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// `:status` is 200.
    pub good: bool,
    /// `grpc-status`.
    pub grpc_status: Option<u8>,
}

/// A header field, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    /// `:status: 200`.
    Good,
    GrpcStatus(u8),
    Other,
}

impl Table {
    /// Reads a block; every block has to be read, and in the order they came. `None` if it is malformed.
    pub fn read(&mut self, block: &[u8]) -> Option<Block> {
        let mut rest = block;
        let mut said = Block::default();
        while let Some(&first) = rest.first() {
            let field = match first {
                0x80.. => self.field(number(&mut rest, 7)?)?,
                0x40.. => {
                    let field = self.literal(&mut rest, 6)?;
                    self.entries.push_front(field);
                    self.entries.truncate(MAX_ENTRIES);
                    field
                }
                // The table gets another size, which changes no index.
                0x20.. => {
                    number(&mut rest, 5)?;
                    continue;
                }
                _ => self.literal(&mut rest, 4)?,
            };
            match field {
                Field::Good => said.good = true,
                Field::GrpcStatus(status) => said.grpc_status = Some(status),
                Field::Other => {}
            }
        }
        Some(said)
    }

    /// A field whose value is spelled out, and its name too where its index is 0.
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

/// A number that begins in the last `bits` of a byte.
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

/// A string, and whether it is in Huffman's code.
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
    fn a_status_is_found_however_it_is_written() {
        let entered = [&[0x40, 11], GRPC_STATUS, &[1, b'0']].concat();
        let in_huffman = [&[0x40, 0x88], GRPC_STATUS_HUFFMAN, &[0x81, 0x07]].concat();
        for block in [entered, in_huffman] {
            let mut table = Table::default();
            let ok = Some(Block { good: false, grpc_status: Some(0) });
            assert_eq!(table.read(&block), ok);
            assert_eq!(table.read(&[0x80 | 62]), ok, "the entry by its index");
            assert_eq!(table.read(&[0x0f, 62 - 15, 2, b'1', b'3']).unwrap().grpc_status, Some(13));
            assert_eq!(table.read(&[0x40, 1, b'x', 1, b'y']), Some(Block::default()));
            assert_eq!(table.read(&[0x80 | 63]), ok, "a newer entry comes before it");
        }
        assert_eq!(Table::default().read(&[0x88]), Some(Block { good: true, grpc_status: None }));
    }

    #[test]
    fn digits_are_coded_as_the_rfc_has_it() {
        // RFC 7541 C.6.1 has 302 as 64 02, and appendix B each digit.
        assert_eq!(digits_in_huffman("302"), [0x64, 0x02]);
        assert_eq!(digits_in_huffman("16"), [0b0000_1011, 0b1001_1111][..].to_vec());
    }

    #[test]
    fn a_broken_block_is_refused() {
        for block in [&[0x80][..], &[0x80 | 62], &[0x40, 5, b'x'], &[0xff, 0xff, 0xff, 0xff], &[0x40]] {
            assert_eq!(Table::default().read(block), None, "{block:x?}");
        }
    }
}
