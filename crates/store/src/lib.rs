//! Keeps the engine's facts in a database.
//!
//! [`Sqlite`] is the embedded store: one file, one writer, a few readers. What a store must do is said by
//! [`engine::Store`] and checked by one suite in `tests/conformance`, whatever the database.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod process;
mod sqlite;

pub use process::{Process, up};
pub use sqlite::{Holder, Instance, InstanceState, OpenError, Options, Sqlite, check, holder};
