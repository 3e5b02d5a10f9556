//! Tests of the official Rust client against a running a2ad, whose URL is in `A2AD_URL`, such as
//! `http://127.0.0.1:4242`.
//!
//! The SDK uses the same types for every binding, so each test is written once and run for each binding.

#![cfg(test)]

mod cancel;
mod card;
mod errors;
mod helpers;
mod list;
mod send;
mod stream;
mod subscribe;
mod turns;
