//! Small compressed bodies that would be huge if decompressed: 256 MiB of spaces and more, one for each encoding.

/// A gzip member whose deflate stream repeats one byte as often as 2 MiB can encode: a ratio of 1 to 158.
pub(crate) fn gzip() -> Vec<u8> {
    const MATCHES: usize = 1 << 20;
    let mut bits = Bits::default();
    // The last block, fixed codes; a space; then matches of length 258 at distance 1; then the end of the block.
    bits.low_first(0b1, 1);
    bits.low_first(0b01, 2);
    bits.code(0x30 + u32::from(b' '), 8);
    for _ in 0..MATCHES {
        bits.code(0b1100_0101, 8);
        bits.code(0, 5);
    }
    bits.code(0, 7);
    let mut out = b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec();
    out.extend(bits.finish());
    // The checksum is wrong, but is only verified at the end of the decompression.
    out.extend([0; 8]);
    out
}

/// A zstd frame of 4,096 blocks that each repeat one byte to 128 KiB: 16 KiB for 512 MiB.
pub(crate) fn zstd() -> Vec<u8> {
    const BLOCKS: usize = 4096;
    const BLOCK_BYTES: u32 = 128 * 1024;
    const RUN: u32 = 1;
    let mut out = b"\x28\xb5\x2f\xfd\x00\x58".to_vec();
    for block in 1..=BLOCKS {
        let header = u32::from(block == BLOCKS) | RUN << 1 | BLOCK_BYTES << 3;
        out.extend(&header.to_le_bytes()[..3]);
        out.push(b' ');
    }
    out
}

/// A brotli stream: 203 bytes for 256 MiB.
pub(crate) fn brotli() -> Vec<u8> {
    let digits: Vec<u8> =
        BROTLI.bytes().filter_map(|digit| char::from(digit).to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

const BROTLI: &str = "\
    cfffff7f002440e2b14072effff9ffff0f8004401c1680eefd3fffffff01900088c302d0bdffe7ffff3f001200715800\
    baf7fffcffff074002200e0b40f7fe9fffffff004800c46101e8defff3ffff1f000980382c00ddfb7ffeffff03200110\
    8705a07bffcfffff7f002400e2b00074effff9ffff0f8004401c1680eefd3fffffff01900088c302d0bdffe7ffff3f00\
    1200715800baf7fffcffff074002200e0b40f7fe9fffffff004800c46101e8defff3ffff1f000980382c00ddfbfffcff\
    ff072001108705a07bff0f";

/// Bits in the order of deflate: lowest bit of a byte first, codes highest bit first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn low_first(&mut self, value: u32, count: u32) {
        for at in 0..count {
            self.push(value >> at & 1);
        }
    }

    fn code(&mut self, value: u32, count: u32) {
        for at in (0..count).rev() {
            self.push(value >> at & 1);
        }
    }

    fn push(&mut self, bit: u32) {
        if self.used == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit == 1) << self.used;
        }
        self.used = (self.used + 1) % 8;
    }

    fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
