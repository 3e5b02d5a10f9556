//! A seeded random number generator: the choices of a run can be repeated from its printed seed.
//!
//! SplitMix64 is sufficient for choosing times and operations, not for secrets. The scheduling of the machine is
//! not repeatable.

use std::ops::RangeInclusive;

use uuid::Uuid;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent generator for one of several actors.
    pub(crate) fn branch(&mut self) -> Self {
        Self(self.next())
    }

    pub(crate) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.next() % (range.end() - range.start() + 1)
    }

    pub(crate) fn uuid(&mut self) -> Uuid {
        let bytes = (u128::from(self.next()) << 64 | u128::from(self.next())).to_le_bytes();
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A random seed for a run without `--seed`.
pub(crate) fn fresh_seed() -> u64 {
    Uuid::new_v4().as_u64_pair().0
}
