//! What is fuzzed: one file per row of the test matrix.

pub(crate) mod card;
pub(crate) mod cursor;
pub(crate) mod json;
pub(crate) mod legacy;
pub(crate) mod pb;
pub(crate) mod rest;
pub(crate) mod sm;
