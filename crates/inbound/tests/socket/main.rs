//! The doors from outside: bytes in, bytes out, over a real socket.
//!
//! The client is a few lines of our own that add nothing to what is sent and hide nothing of what comes back. Each
//! test has a server and a store of its own, whose clock stands still, so that answers can be compared whole.

#![allow(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

mod common;

mod access;
mod capabilities;
mod card_shapes;
mod cards;
mod connections;
mod dialects;
mod drain;
mod errors;
mod grpc;
mod houses;
mod http2;
mod legacy_methods;
mod legacy_streams;
mod limits;
mod matrix;
mod methods;
mod mounts;
mod paths;
mod rest;
mod streams;
mod text;
