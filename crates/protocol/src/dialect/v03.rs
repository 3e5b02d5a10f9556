//! A2A 0.2 and 0.3 over JSON-RPC: every object says its `kind`.
//!
//! The releases of this family only added to each other, so one codec serves them all. Of what the model
//! holds it has no word for tenants, pages of webhooks, "no history at all", and media types and file names of
//! text and data; the last two go through [`carrier`](super::legacy::carrier). A message without an id is
//! let in, as clients of the time send it; whoever takes it gives it one.

pub mod card;
pub mod error;
pub mod event;
pub mod message;
pub mod operation;
pub mod push;
pub mod reply;
pub mod task;

/// The version clients name for this dialect.
pub const VERSION: &str = "0.3";
