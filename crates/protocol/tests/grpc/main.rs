//! The protobuf services seen from outside: bytes in, bytes out.
//!
//! [`samples`] compares with what others write; [`round_trips`] says what survives; [`bad`] what is refused, and in
//! which words; [`numbers`] what becomes of JSON; [`names`] of ids; [`sizes`] what is too much; [`cards`] and
//! [`status`] are about cards and errors; [`service`] about names and descriptors.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod bad;
#[path = "../old_cards/values.rs"]
mod card_values;
mod cards;
mod doubles;
#[path = "../legacy/limits.rs"]
mod limits;
mod names;
mod numbers;
mod round_trips;
mod samples;
mod service;
mod sizes;
mod status;
#[path = "../wire/values.rs"]
mod values;
mod wire;
