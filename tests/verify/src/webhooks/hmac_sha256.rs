//! HMAC-SHA256 (FIPS 180-4, RFC 2104), written for the proofs: the server uses a library, and a fault of that library or of
//! its use must not hide on both sides.

const BLOCK: usize = 64;

/// The message authentication code of the parts, one after another.
pub(super) fn code(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut padded = [0; BLOCK];
    if key.len() > BLOCK {
        padded[..32].copy_from_slice(&digest(&[key]));
    } else {
        padded[..key.len()].copy_from_slice(key);
    }
    let (inner, outer) = (padded.map(|byte| byte ^ 0x36), padded.map(|byte| byte ^ 0x5c));
    let first = digest(&[&[&inner[..]], parts].concat());
    digest(&[&outer, &first])
}

/// The SHA-256 digest of the parts, one after another.
pub(super) fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut text = parts.concat();
    let bits = (text.len() as u64) * 8;
    text.push(0x80);
    while text.len() % BLOCK != BLOCK - 8 {
        text.push(0);
    }
    text.extend(bits.to_be_bytes());
    let mut state = fractions(8, 2).try_into().unwrap_or([0; 8]);
    let constants = fractions(64, 3);
    for block in text.chunks_exact(BLOCK) {
        compress(&mut state, block, &constants);
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn compress(state: &mut [u32; 8], block: &[u8], constants: &[u32]) {
    let mut words: Vec<u32> = block
        .chunks_exact(4)
        .map(|four| four.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)))
        .collect();
    for at in 16..64 {
        let (early, late) = (words[at - 15], words[at - 2]);
        let early = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let late = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        words.push(words[at - 16].wrapping_add(early).wrapping_add(words[at - 7]).wrapping_add(late));
    }
    let mut now = *state;
    for (word, constant) in words.iter().zip(constants) {
        let [a, b, c, d, e, f, g, h] = now;
        let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let first =
            [sum, (e & f) ^ (!e & g), *constant, *word].iter().fold(h, |sum, part| sum.wrapping_add(*part));
        let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = sum.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        now = [first.wrapping_add(second), a, b, c, d.wrapping_add(first), e, f, g];
    }
    for (word, change) in state.iter_mut().zip(now) {
        *word = word.wrapping_add(change);
    }
}

/// The first 32 bits of the fractional parts of the square (2) or cube (3) roots of the first primes.
fn fractions(count: usize, root: u32) -> Vec<u32> {
    let is_prime = |number: &u128| (2..*number).all(|divisor| !number.is_multiple_of(divisor));
    (2..).filter(is_prime).take(count).map(|prime| fraction(prime, root)).collect()
}

/// The largest number whose power is at most the prime, in units of 2^-32, without its whole part.
fn fraction(prime: u128, root: u32) -> u32 {
    let scaled = prime << (32 * root);
    let (mut low, mut high) = (0_u128, 1_u128 << 38);
    while high - low > 1 {
        let middle = u128::midpoint(low, high);
        if middle.pow(root) <= scaled { low = middle } else { high = middle }
    }
    (low & u128::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: [u8; 32]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn published_vectors() {
        assert_eq!(
            hex(digest(&[b"abc"])),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(hex(digest(&[])), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        // RFC 4231, cases 2 and 6.
        let case_2 = code(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        assert_eq!(hex(case_2), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let case_6 = code(&[0xaa; 131], &[b"Test Using Larger Than Block-Size Key - Hash Key First"]);
        assert_eq!(hex(case_6), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }
}
