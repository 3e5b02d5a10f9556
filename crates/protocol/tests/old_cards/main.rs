//! Agent cards in the forms from before 1.0, and the one document for readers of both.
//!
//! [`samples`] holds what is written, byte for byte; [`security`] each scheme both ways; [`foreign`] the cards of
//! strangers and of careless peers; [`houses`] what a house may spell in its own way; [`schema`] that the draft's
//! schema agrees; [`round_trips`] what holds for any card.

#![allow(clippy::unwrap_used, reason = "a helper that unwraps fails its test")]

mod codec;
mod foreign;
mod houses;
mod round_trips;
mod samples;
mod schema;
mod security;
mod values;
