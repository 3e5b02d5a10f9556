//! Client for one remote agent over JSON-RPC, in whichever generation of the protocol the agent supports.
//!
//! [`Client`] makes single calls: it has no timeout, follows no redirect and does not retry; dropping a
//! future cancels its request. [`Follow`] follows one message to its outcome: it reconnects when the
//! connection breaks and delivers every event once. `discover` finds the agent's card, `choose` selects
//! interface and dialect. Restricting which hosts may be called is not done here.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ask;
mod choose;
mod client;
mod delivered_task;
mod discover;
mod envelope;
mod error;
mod follow;
mod history;
mod options;
mod sse;
mod stream;
pub mod text;
mod transport;

pub use ask::call_agent;
pub use client::Client;
pub use discover::{FoundCard, find_card, get};
pub use error::Error;
pub use follow::{Follow, FollowEvent};
pub use options::ClientOptions;
pub use stream::EventStream;
