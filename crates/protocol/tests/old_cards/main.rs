//! Agent cards in the forms before 1.0, and the merged document for clients of both generations.
//!
//! [`samples`] checks the output byte for byte; [`security`] each scheme in both directions; [`remote_cards`]
//! cards of other implementations; [`profiles`] the options of compatibility profiles; [`schema`] conformance
//! to the draft's schema; [`round_trips`] properties of any card.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod codec;
mod profiles;
mod remote_cards;
mod round_trips;
mod samples;
mod schema;
mod security;
mod values;
