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

use super::proto_json::ProtoJson;
use crate::{
    Message, Part, TaskStatus,
    json::{
        read::{Object, Read},
        write::Writer,
    },
};

/// The version number clients use for this dialect.
pub const VERSION: &str = "1.0";

struct Form;

impl ProtoJson for Form {
    fn decode_parts(object: &Object<'_, '_>, max: usize) -> Read<Vec<Part>> {
        message::decode_parts(object, max)
    }

    fn encode_parts(writer: &mut Writer, parts: &[Part]) {
        writer.array(parts, message::encode_part);
    }

    fn encode_message(writer: &mut Writer, message: &Message) {
        message::encode(writer, message);
    }

    fn encode_status(writer: &mut Writer, status: &TaskStatus) {
        task::encode_status(writer, status);
    }

    fn encode_settled(_: &mut Writer) {}
}
