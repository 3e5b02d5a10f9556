//! What the built-in agents say, as clients of an engine see it: one file per agent.

#![allow(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

mod common;

mod approver;
mod currency;
mod demo;
mod echo;
mod slow_writer;
mod stances;
mod tck;
