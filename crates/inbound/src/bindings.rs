//! The ways of putting a call on the wire.

pub(crate) mod jsonrpc;
pub(crate) mod text;
