//! Everything that leaves the process: agent backends, and later webhooks, through one guarded dialler.
//!
//! So far it holds the built-in agents. They reach nothing outside the process, except one of the agents for
//! tests, which writes to a file.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod agents;
