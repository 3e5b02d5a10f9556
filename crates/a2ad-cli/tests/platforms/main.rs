//! Agents with compatibility profiles, as the clients of their platforms see them. The tools behind them are a user's own:
//! HTTP functions and commands.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]
#![allow(clippy::disallowed_types, reason = "documents are compared as trees")]

mod behaviour;
mod examples;
mod own_tools;
