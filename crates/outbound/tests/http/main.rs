//! Tests of HTTP functions and of operations of OpenAPI documents through an engine with a real store, over real sockets.

#![cfg(feature = "backends")]
#![allow(clippy::unwrap_used, reason = "a test fails on an unexpected error")]

mod function;
mod server;

#[cfg(feature = "openapi")]
mod openapi;
mod requests;
mod responses;
mod retries;
