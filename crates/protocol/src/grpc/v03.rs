//! A2A 0.2.5 to 0.3: package `a2a.v1`.
//!
//! Ids are resource names here, parts stand under `content`, files and data in messages of their own. What this form
//! cannot say rides in metadata, by the code of its JSON form (`dialect::v03_proto`); siblings by name.

mod card;
mod event;
mod message;
mod name;
pub(super) mod operation;
mod push;
pub(super) mod reply;
mod task;

pub(super) use event::{decode as decode_event, encode as encode_event};
