//! Reads: the threads that make them, and the queries.

pub(super) mod expiry;
pub(super) mod lists;
pub(super) mod operators;
pub(super) mod readers;
pub(super) mod snapshots;
