//! The A2A 1.0 wire form seen from outside: bytes in, bytes out.
//!
//! [`samples`] holds what is read and written, byte for byte; [`bad`] what is refused, and in which words;
//! [`round_trips`] and [`hostile`] what holds for any input; [`limits`] the sizes; [`lists`] that the lists of
//! operations and errors agree; [`foreign_errors`] how the error objects of other servers are understood.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod bad;
mod codec;
mod foreign_errors;
mod hostile;
mod limits;
mod lists;
mod round_trips;
mod samples;
mod values;
