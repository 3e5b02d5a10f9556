//! The official Rust client against a running a2ad, which `A2AD_URL` names, as `http://127.0.0.1:4242`.
//!
//! The SDK shows every binding in the same types, so each behaviour is told once and run for each of them.

#![cfg(test)]

mod cancel;
mod card;
mod errors;
mod list;
mod send;
mod stream;
mod subscribe;
mod talk;
mod turns;
