//! Agent cards in every form, and the merged document for clients of both generations.
//!
//! [`v1`] checks the form of 1.0; [`samples`] the older forms byte for byte; [`security`] each scheme in both
//! directions; [`remote_cards`] cards of other implementations; [`profiles`] the options of compatibility profiles;
//! [`schema`] conformance to the draft's schema; [`round_trips`] properties of any card.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod codec;
mod profiles;
mod remote_cards;
mod round_trips;
mod samples;
mod schema;
mod security;
mod v1;
mod values;
