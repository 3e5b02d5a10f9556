//! One request: its context, its body, the version that it speaks, and its way to the engine.

pub(crate) mod access_log;
pub(crate) mod body;
pub(crate) mod connection;
pub(crate) mod decoded_request;
pub(crate) mod endpoint;
pub(crate) mod exchange;
pub(crate) mod negotiate;
pub(crate) mod sender;
pub(crate) mod trace;
pub(crate) mod version;
