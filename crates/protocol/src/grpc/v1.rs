//! A2A 1.0: package `lf.a2a.v1`.
//!
//! Names and numbers look like those of 0.3 and are not. What is asked for and refused is what the JSON form of this
//! generation asks for and refuses; siblings by name.

mod card;
mod event;
mod message;
pub(super) mod operation;
mod push;
pub(super) mod reply;
mod task;

pub(super) use event::{decode as decode_event, encode as encode_event};
