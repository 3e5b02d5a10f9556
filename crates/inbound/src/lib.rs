//! Bytes from a socket become a call by a known caller; the answer becomes bytes.
//!
//! [`router`] is everything a server answers, to be mounted anywhere; [`listen`] is our own way of accepting
//! connections, with the timers and caps that a bare accept loop lacks. Nothing here decides about tasks.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod auth;
mod bindings;
mod body;
mod card;
pub mod listen;
mod respond;
mod routes;
mod sse;
mod version;

pub use routes::{Options, Ready, router};
