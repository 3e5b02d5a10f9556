//! All that leaves the process: what agents do, and later webhooks, through one guarded dialler.
//!
//! So far the agents that come with a2ad live here. They reach nothing outside the process.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod agents;
