//! The ways of putting a call on the wire.

pub(crate) mod grpc;
pub(crate) mod jsonrpc;
pub(crate) mod rest;
pub(crate) mod text;
