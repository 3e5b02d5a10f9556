//! What the engine does for its callers, one file per behaviour.
//!
//! Each test has a SQLite store of its own in a temporary folder and an agent whose every word it decides. All
//! files are one program, because each would otherwise be linked with its own copy of the database.

#![allow(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

mod common;

mod cancel;
mod contexts;
mod crash;
mod deadline;
mod draft;
mod drain;
mod dropped_call;
mod history;
mod idempotency;
mod limits;
mod list;
mod message_or_task;
mod messages_to_working_task;
mod multi_turn;
mod one_pass;
mod panic;
mod queue;
mod reopening;
mod resume;
mod retention;
mod retry;
mod skills;
mod subscribe;
