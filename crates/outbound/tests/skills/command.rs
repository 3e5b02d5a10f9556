//! Skills with a command, run by the engine with a real store.

mod common;
mod jsonl;
mod limits;
mod plain;
