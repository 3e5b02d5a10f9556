//! Calls one remote agent over JSON-RPC, in whichever generation of the protocol it speaks.
//!
//! [`Client`] makes single calls: it keeps no deadline, follows no redirect and does not retry, and dropping a
//! future ends its request. [`Follow`] sees one message through to its outcome: it comes back when the
//! connection breaks and tells every piece once. Where an agent is found and what is spoken there is decided in
//! `discover` and `choose`. Who may be dialled is not decided here.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ask;
mod choose;
mod client;
mod discover;
mod envelope;
mod error;
mod follow;
mod history;
mod options;
mod seen;
mod sse;
mod stream;
pub mod text;
mod transport;

pub use ask::call_agent;
pub use client::Client;
pub use discover::{FoundCard, find_card, get};
pub use error::Error;
pub use follow::{Follow, FollowEvent};
pub use options::Options;
pub use stream::EventStream;
