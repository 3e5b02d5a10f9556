//! The A2A 1.0 wire form as a black box: bytes in, bytes out.
//!
//! [`samples`] checks decoding and encoding byte for byte; [`bad`] which input is rejected with which
//! violation; [`round_trips`] and [`hostile`] properties of any input; [`limits`] the sizes; [`lists`] that
//! the lists of operations and errors agree; [`remote_errors`] how the error objects of other servers are
//! read.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod bad;
mod codec;
mod hostile;
mod limits;
mod lists;
mod remote_errors;
mod round_trips;
mod samples;
mod values;
