//! 0.2.5 to 0.3 over HTTP+JSON: the JSON form of the older protobuf file, package `a2a.v1`.
//!
//! Names and numbers look like those of 1.0 and are not: parts stand under `content`, files and data in messages
//! of their own, webhooks in a wrapping with a resource name, and errors are bare. Peers of 0.2.5 and 0.2.6 called
//! the message of a request `request`, that of an answer `msg` and that of a status `update`; all are read.
//! What this form cannot say rides in metadata, see [`legacy::carrier`](super::legacy::carrier).

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
