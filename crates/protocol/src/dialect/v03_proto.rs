//! 0.2.5 to 0.3 over HTTP+JSON: the JSON form of the older protobuf file, package `a2a.v1`.
//!
//! Names and numbers resemble those of 1.0 but differ: parts are under `content`, files and data are nested
//! messages, webhooks have a wrapper with a resource name, and errors are bare objects. 0.2.5 and 0.2.6 named
//! the message of a request `request`, that of a response `msg` and that of a status `update`; all are
//! accepted. Fields this form lacks are carried in metadata, see [`legacy::carrier`](super::legacy::carrier).

pub mod card;
pub mod error;
pub mod event;
pub mod message;
pub mod operation;
pub mod push;
pub mod reply;
pub mod task;

use super::{proto_json::ProtoJson, v1::message::PARTS};
use crate::{
    Message, Part, TaskStatus,
    json::{
        read::{Object, Read},
        write::Writer,
    },
};

/// The version number clients use for this dialect.
pub const VERSION: &str = "0.3";

struct Form;

impl ProtoJson for Form {
    fn decode_parts(object: &Object<'_, '_>, max: usize) -> Read<Vec<Part>> {
        object.list_required_in_request("parts", PARTS, |node| message::decode_parts(node, max))
    }

    fn encode_parts(writer: &mut Writer, parts: &[Part]) {
        message::encode_parts(writer, parts);
    }

    fn encode_message(writer: &mut Writer, message: &Message) {
        message::encode(writer, message);
    }

    fn encode_status(writer: &mut Writer, status: &TaskStatus) {
        task::encode_status(writer, status);
    }

    /// A settled status (terminal or interrupted) is the last frame of its stream.
    fn encode_settled(writer: &mut Writer) {
        writer.key("final").boolean(true);
    }
}
