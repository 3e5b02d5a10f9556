//! Skills, run by an engine with a real store: those of the built-in agents, commands, and functions over HTTP.

#![allow(clippy::unwrap_used, reason = "a test fails on an unexpected error")]

mod agents;
#[cfg(feature = "backends")]
mod command;
mod engine_host;
#[cfg(feature = "backends")]
mod http;
