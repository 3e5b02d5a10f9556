//! The address guard of the dialler: verdicts about URLs, and connections to real listeners.
//!
//! The tests with connections run in a network namespace in which every address is an address of this machine, so that
//! each address a peer must not reach has a listener that would notice. A server for names runs there too.

#![cfg(feature = "backends")]
#![allow(clippy::unwrap_used, reason = "a test fails on an unexpected error")]
#![allow(clippy::disallowed_methods, reason = "the tests open connections of their own")]

mod listeners;
mod name_server;
mod namespace;
mod spellings;

mod addresses;
mod names;
mod requests;
mod verdicts;
