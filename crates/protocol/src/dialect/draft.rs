//! The first public draft, up to 0.1, over JSON-RPC: `tasks/send` and its related methods.
//!
//! The client chooses the task id and sends it beside the message. Messages and artifacts have no ids, two
//! task states do not exist, a stream has status and artifact updates only, and every send is a task. Ids,
//! references and extensions of messages and artifacts and the missing states are carried in metadata by
//! [`carrier`](super::legacy::carrier). Tenants, the ids of artifacts and webhooks, the context of an update
//! and the position of a message in the history are lost.

pub mod card;
pub mod error;
pub mod event;
pub mod message;
pub mod operation;
pub mod push;
pub mod reply;
pub mod task;

/// The version number clients use for this dialect.
pub const VERSION: &str = "0.1";
