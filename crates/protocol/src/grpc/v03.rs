//! A2A 0.2.5 to 0.3: package `a2a.v1`.
//!
//! Ids are resource names, parts are under `content`, files and data are nested messages. Fields this form
//! lacks are carried in metadata with the code of its JSON form (`dialect::v03_proto`), which has modules of
//! the same names.

mod card;
mod event;
mod message;
mod name;
pub(super) mod operation;
mod push;
pub(super) mod reply;
mod task;

pub(super) use event::{decode as decode_event, encode as encode_event};
