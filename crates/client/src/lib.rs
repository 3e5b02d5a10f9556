//! Calls one remote agent.
//!
//! So far the one dialect is A2A 1.0 and the one binding JSON-RPC over plain http; which of them a card offers
//! is decided in `discover`. A client keeps no deadline: a call takes as long as the agent does, and dropping
//! its future ends the request. It does not follow redirects and does not retry. Who may be dialled is not
//! decided here.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod client;
mod discover;
mod envelope;
mod error;
mod sse;
mod stream;
mod transport;

pub use client::Client;
pub use error::Error;
pub use stream::EventStream;
