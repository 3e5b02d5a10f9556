//! The error object of JSON-RPC answers: its schema wants `data` everywhere.

use crate::{
    Error, ErrorKind,
    dialect::legacy::error,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

/// Writes the error object. Only JSON-RPC's own errors have details; the schema wants null from the others.
pub fn encode(writer: &mut Writer, error: &Error) {
    let row = shown(error.kind).row();
    writer.object(|writer| {
        error::encode_head(writer, error, &row);
        writer.key("data");
        match row.legacy_code {
            -32700 | -32600 | -32602 | -32603 => error::encode_details(writer, error),
            _ => writer.raw("null"),
        }
    });
}

/// Reads an error object.
pub fn decode(node: Node<'_, '_>) -> Read<Error> {
    error::decode(node, by_code)
}

/// The error this dialect has a code for.
fn shown(kind: ErrorKind) -> ErrorKind {
    match kind {
        ErrorKind::InvalidAgentResponse => ErrorKind::Internal,
        ErrorKind::ExtendedCardNotConfigured => ErrorKind::UnsupportedOperation,
        _ => kind,
    }
}

/// The text of 0.1.0 gave meanings to codes that later generations use for other things.
fn by_code(code: i32) -> Option<ErrorKind> {
    match code {
        // Streaming is not supported, or the state of the task forbids it.
        -32006 | -32009 => Some(ErrorKind::UnsupportedOperation),
        -32007 => Some(ErrorKind::Unauthenticated),
        -32008 => Some(ErrorKind::PermissionDenied),
        -32010 => Some(ErrorKind::RateLimited),
        -32011 => Some(ErrorKind::Unavailable),
        // The catch-all code means nothing in particular.
        -32000 => None,
        _ => ErrorKind::ALL.into_iter().find(|kind| kind.row().legacy_code == code),
    }
}
