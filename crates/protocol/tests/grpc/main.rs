//! The protobuf services as black boxes: bytes in, bytes out.
//!
//! [`samples`] compares with the output of other implementations; [`round_trips`] checks what is preserved;
//! [`bad`] which input is rejected with which violation; [`numbers`] the conversion of JSON; [`names`]
//! resource names; [`sizes`] the limits; [`cards`] and [`status`] cards and errors; [`service`] names and
//! descriptors.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod bad;
#[path = "../cards/values.rs"]
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
