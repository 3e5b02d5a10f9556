//! URLs that a client or an issuer must not choose (T-S2): webhooks, registered over a socket in both ways, with
//! `CreateTaskPushNotificationConfig` and with the message that starts a task, and the keys of token issuers.
//!
//! The tests with connections run in the network namespace of the dialler's guard, in which every address has a listener
//! that would notice a connection.

#![cfg(feature = "backends")]
#![allow(clippy::unwrap_used, reason = "a test fails on an unexpected error")]
#![allow(clippy::disallowed_methods, reason = "the tests open connections of their own")]
#![allow(clippy::disallowed_types, reason = "the tests read responses as any client would")]

// The modules of the guard's tests name the crate like this.
extern crate outbound as a2ad_outbound;

#[path = "../../../outbound/tests/guard/listeners.rs"]
#[allow(dead_code, reason = "the tests of the guard use the rest")]
mod listeners;
#[path = "../../../outbound/tests/guard/name_server.rs"]
mod name_server;
#[path = "../../../outbound/tests/guard/namespace.rs"]
mod namespace;
#[path = "../../../outbound/tests/guard/spellings.rs"]
#[allow(dead_code, reason = "the tests of the guard use the rest")]
mod spellings;

mod server;
mod webhooks;

mod addresses;
mod issuer_keys;
mod names;
mod responses;
