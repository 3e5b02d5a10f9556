//! The command `a2ad`: its command line, configuration file and logging. What it serves and calls with is the
//! library `a2ad`.
//!
//! This is a library only for the program, for its tests, and for the program of the proofs, which has more built-in agents.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod builtins;
mod check;
mod cli;
mod config;
mod logging;
mod program;
mod reload;
mod selftest;

#[doc(hidden)]
pub use check::check_config;
pub use program::run;
