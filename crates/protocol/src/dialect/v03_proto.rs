//! 0.2.5 to 0.3 over HTTP+JSON: the JSON form of the older protobuf file, package `a2a.v1`.
//!
//! Names and numbers resemble those of 1.0 but differ: parts are under `content`, files and data are nested
//! messages, webhooks have a wrapper with a resource name, and errors are bare objects. 0.2.5 and 0.2.6 named
//! the message of a request `request`, that of a response `msg` and that of a status `update`; all are
//! accepted. Fields this form lacks are carried in metadata, see [`legacy::carrier`](super::legacy::carrier).

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
