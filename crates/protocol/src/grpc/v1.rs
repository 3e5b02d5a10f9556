//! A2A 1.0: package `lf.a2a.v1`.
//!
//! Names and numbers resemble those of 0.3 but differ. Validation is the same as in the JSON form of this
//! version (`dialect::v1`), which has modules of the same names.

mod card;
mod event;
mod message;
pub(super) mod operation;
mod push;
pub(super) mod reply;
mod task;

pub(super) use event::{decode as decode_event, encode as encode_event};
