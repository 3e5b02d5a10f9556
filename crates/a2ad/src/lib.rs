//! a2ad as a library: agents, the server that runs them, and what the two need.
//!
//! The binary of the same name is this library with a command line. Its parts are public so that another
//! program can run the same server with agents of its own.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod check;
pub mod cli;
mod config;
mod serve;

pub use engine::{
    Agent, Agents, Dedupe, Hosted, Limits, OnCrash, Outcome, Profile, Retention, Traits, Turn, Update,
    Updates,
};
pub use outbound::agents;
pub use serve::{ServeError, Settings, serve};
