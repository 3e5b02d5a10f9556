//! The JSON form of the older protobuf file as a black box: bytes in, bytes out.
//!
//! [`samples`] checks decoding and encoding byte for byte; [`addresses`] path and query; [`parts`] files,
//! data and fields carried in metadata; [`bad`] which input is rejected with which violation; [`errors`] the
//! bare error object; [`round_trips`] what this dialect preserves.

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
