//! Tests of the engine's operations, one file per behaviour.
//!
//! Each test has its own SQLite store in a temporary folder and an agent whose updates it scripts. All files
//! are one binary, because each would otherwise be linked with its own copy of SQLite.

#![allow(clippy::unwrap_used, reason = "a test fails on an unexpected error")]

mod common;

mod admission;
mod api_keys;
mod calls;
mod cancel;
mod catalog;
mod checkpoints;
mod clock_steps;
mod contexts;
mod crash;
mod deadline;
mod draft;
mod drain;
mod dropped_call;
mod fairness;
mod guards;
mod history;
mod idempotency;
mod limits;
mod list;
mod log_reads;
mod message_or_task;
mod messages_to_working_task;
mod multi_turn;
mod open_questions;
mod operators;
mod origin;
mod panic;
mod push;
mod push_places;
mod queue;
mod racing_messages;
mod recording;
mod reopening;
mod repeated_crashes;
mod resume;
mod retention;
mod retry;
mod run_settings;
mod single_commit;
mod skills;
mod starting_skills;
mod steps;
mod stopping;
mod subscribe;
mod task_deadline;
mod wake;
