//! The JSON-RPC wire forms before A2A 1.0 as black boxes: bytes in, bytes out.
//!
//! [`samples`] checks decoding and encoding byte for byte, also of 1.0; [`bad`] which input is rejected with which
//! violation; [`round_trips`] what an older dialect preserves; [`frames`] the frames of a stream; [`style`]
//! the options of compatibility profiles; [`errors`] every error, also of other servers; [`hostile`]
//! properties of any input; [`sizes`] the limits; [`lists`] that the lists of operations agree; [`schema`]
//! that the draft's output conforms to its published schema.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

#[path = "../wire/almost_valid.rs"]
mod almost_valid;
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
