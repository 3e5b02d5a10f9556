//! Database storage for the engine.
//!
//! [`Sqlite`] is the embedded store: one file, one writer thread, a few reader threads. The contract of a store is
//! the trait [`engine::Store`]; one test suite in `tests/conformance` checks it for every database.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod process;
mod sqlite;

pub use process::{Process, up};
pub use sqlite::{
    CopyError, Draining, Instance, InstanceState, KeyFile, KeyFileError, KeyFolder, KeyForm, KeyOrigin,
    LockHolder, OpenError, ServedAt, Sqlite, SqliteOptions, StoreCopy, backup, check, lock_holder, restore,
};
