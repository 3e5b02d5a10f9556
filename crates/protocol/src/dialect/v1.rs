//! A2A 1.0: the JSON form of the protobuf file `lf.a2a.v1`.
//!
//! Decoders follow ProtoJSON and are lenient; encoders emit camelCase, enum names, and omit unset members
//! except those every client relies on. The store keeps events in this form, so this codec must stay able to
//! read everything it ever wrote.

pub mod address;
pub mod card;
pub mod error;
pub mod event;
pub mod message;
pub mod operation;
pub mod push;
pub mod reply;
pub mod task;

/// The version number clients use for this dialect.
pub const VERSION: &str = "1.0";
