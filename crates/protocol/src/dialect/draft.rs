//! The first public draft, up to 0.1, over JSON-RPC: `tasks/send` and what belongs to it.
//!
//! A client names its task and says what it has to say beside it; messages and artifacts have no names of
//! their own, two states are missing, a stream knows changes only, and everything is a task. Ids, references
//! and extensions of messages and artifacts and the missing states go through
//! [`carrier`](super::legacy::carrier); tenants, the ids of artifacts and webhooks, the context of an update
//! and the place of a message in a history are not said at all.

pub mod card;
pub mod error;
pub mod event;
pub mod message;
pub mod operation;
pub mod push;
pub mod reply;
pub mod task;

/// The version clients name for this dialect.
pub const VERSION: &str = "0.1";
