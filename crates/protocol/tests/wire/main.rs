//! The A2A 1.0 wire form as a black box: bytes in, bytes out.
//!
//! [`bad`] checks which input is rejected with which violation; [`round_trips`] and [`hostile`] properties of
//! any input; [`limits`] the sizes; [`lists`] that the lists of operations and errors agree; [`remote_errors`]
//! how the error objects of other servers are read. The samples of every JSON-RPC generation are checked in
//! `../legacy/samples.rs`.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod almost_valid;
mod bad;
mod codec;
mod hostile;
mod limits;
mod lists;
mod remote_errors;
mod round_trips;
mod values;
