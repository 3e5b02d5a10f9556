//! The backends, one module each.

pub mod a2a;
pub mod command;
pub mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "openapi")]
pub mod openapi;
