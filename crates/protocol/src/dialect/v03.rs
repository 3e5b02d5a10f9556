//! A2A 0.2 and 0.3 over JSON-RPC: every object has a `kind`.
//!
//! The releases of this version only added members, so one codec serves all of them. It has no form for
//! tenants, pages of webhooks, "no history at all", and media types and file names of text and data parts;
//! the last two are carried in metadata by [`carrier`](super::legacy::carrier). Messages without an id are
//! accepted, because clients of the time send them; the receiver assigns an id.

pub mod card;
pub mod error;
pub mod event;
pub mod message;
pub mod operation;
pub mod push;
pub mod reply;
pub mod task;

/// The version number clients use for this dialect.
pub const VERSION: &str = "0.3";
