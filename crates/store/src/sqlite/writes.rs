//! Writes: the one thread that makes them, the queue before it, and what each change does.

pub(super) mod changes;
pub(super) mod free_pages;
pub(super) mod purge;
pub(super) mod queue;
pub(super) mod row_limits;
pub(super) mod writer;
