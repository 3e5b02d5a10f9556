//! The JSON-RPC wire forms before A2A 1.0 seen from outside: bytes in, bytes out.
//!
//! [`samples`] holds what is read and written, byte for byte; [`bad`] what is refused, and in which words;
//! [`round_trips`] what survives the way through an older dialect; [`frames`] what a stream looks like; [`style`]
//! how houses spell; [`errors`] every error and how those of others are understood; [`hostile`] what holds for
//! any input; [`sizes`] how much there may be of it; [`lists`] that the lists of operations agree; [`schema`] that the
//! draft's answers are what its published schema says.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod bad;
mod codec;
mod errors;
mod frames;
mod hostile;
mod limits;
mod lists;
mod round_trips;
mod samples;
mod schema;
mod sizes;
mod style;
#[path = "../wire/values.rs"]
mod values;
