//! The body of an HTTP+JSON error response: the JSON-RPC error object by itself.

use crate::{
    Error,
    dialect::v03,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

/// Writes the error.
pub fn encode(writer: &mut Writer, error: &Error) {
    v03::error::encode(writer, error);
}

/// Reads an error: the bare object, or nested in `error` as some servers send it.
pub fn decode(node: Node<'_, '_>) -> Read<Error> {
    let inside = node.object()?.maybe("error", v03::error::decode)?;
    inside.map_or_else(|| v03::error::decode(node), Ok)
}
