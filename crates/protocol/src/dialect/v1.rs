//! A2A 1.0: the JSON form of the protobuf file `lf.a2a.v1`.
//!
//! Decoders follow ProtoJSON and accept liberally; encoders emit camelCase, enum names, and nothing that is
//! unset, but for the fields every reader relies on. The bytes of an event in this form are also what the
//! store keeps: a log read years from now is read by this codec.

pub mod address;
pub mod card;
pub mod error;
pub mod event;
pub mod message;
pub mod operation;
pub mod push;
pub mod reply;
pub mod task;

/// The version clients name for this dialect.
pub const VERSION: &str = "1.0";
