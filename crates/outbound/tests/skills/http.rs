//! Tests of HTTP functions and of operations of OpenAPI documents through an engine with a real store, over real sockets.

mod function;
mod server;

#[cfg(feature = "openapi")]
mod openapi;
mod requests;
mod responses;
mod retries;
