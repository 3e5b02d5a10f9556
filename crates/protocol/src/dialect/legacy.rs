//! Code shared by the JSON-RPC versions before 1.0.
//!
//! `draft` and `v03` tag their parts, write states and roles in lower case, have fixed error messages and
//! nest the webhook config. The shared pieces are here; each version composes them in its own folder.
//! Model fields that a version lacks are carried in metadata by [`carrier`].

pub mod carrier;
pub(crate) mod enums;
pub(crate) mod error;
pub(crate) mod operation;
pub(crate) mod part;
pub(crate) mod push;
pub(crate) mod state;
pub(crate) mod time;
