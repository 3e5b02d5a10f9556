//! The command `a2ad`: its command line, configuration file and logging. What it serves and calls with is the
//! library `a2ad`.
//!
//! This is a library only for the program and for its tests.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod backends;
mod check;
mod cli;
mod config;
mod logging;
mod nearest;
mod operator_reports;
mod reload;
pub mod selftest;

#[doc(hidden)]
pub use check::check_config;
pub use cli::run;
