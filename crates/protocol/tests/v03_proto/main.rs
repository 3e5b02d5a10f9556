//! The JSON form of the older protobuf file seen from outside: bytes in, bytes out.
//!
//! [`samples`] holds what is read and written, byte for byte; [`addresses`] what stands in paths and queries;
//! [`parts`] files, data and what rides in metadata; [`bad`] what is refused, and in which words; [`errors`] the
//! bare error object; [`round_trips`] what survives the way through this dialect.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod addresses;
mod bad;
mod codec;
mod errors;
#[path = "../legacy/limits.rs"]
mod limits;
mod parts;
mod round_trips;
mod samples;
#[path = "../wire/values.rs"]
mod values;
