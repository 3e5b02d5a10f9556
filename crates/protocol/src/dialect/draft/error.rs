//! The error object of JSON-RPC responses. The draft's schema requires `data` in every error.

use crate::{
    Error, ErrorKind,
    dialect::legacy::error,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

/// Writes the error object. Only JSON-RPC's own errors have details; for the others the schema requires null.
pub fn encode(writer: &mut Writer, error: &Error) {
    let row = wire_kind(error.kind).row();
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

/// The closest error that this dialect has a code for.
fn wire_kind(kind: ErrorKind) -> ErrorKind {
    match kind {
        ErrorKind::InvalidAgentResponse => ErrorKind::Internal,
        ErrorKind::ExtendedCardNotConfigured => ErrorKind::UnsupportedOperation,
        _ => kind,
    }
}

/// Version 0.1.0 assigned codes that later versions use for other errors.
fn by_code(code: i32) -> Option<ErrorKind> {
    match code {
        // Streaming is not supported, or the task's state does not allow the operation.
        -32006 | -32009 => Some(ErrorKind::UnsupportedOperation),
        -32007 => Some(ErrorKind::Unauthenticated),
        -32008 => Some(ErrorKind::PermissionDenied),
        -32010 => Some(ErrorKind::RateLimited),
        -32011 => Some(ErrorKind::Unavailable),
        // The catch-all code identifies no specific error.
        -32000 => None,
        _ => ErrorKind::ALL.into_iter().find(|kind| kind.row().legacy_code == code),
    }
}
