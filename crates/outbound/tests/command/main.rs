//! Skills with a command, run by the engine with a real store.

#![cfg(feature = "backends")]
#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

mod common;
mod jsonl;
mod limits;
mod plain;
