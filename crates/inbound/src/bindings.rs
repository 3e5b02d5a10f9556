//! The protocol bindings. Each decodes a request into an operation and encodes the reply; none decides anything else.

pub(crate) mod extended_card;
pub(crate) mod grpc;
pub(crate) mod jsonrpc;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod operators;
pub(crate) mod process_task;
pub(crate) mod rest;
pub(crate) mod run;
pub(crate) mod skill_call;
pub(crate) mod text;
