//! The error object of JSON-RPC responses.

use crate::{
    Error, ErrorKind,
    dialect::legacy::error,
    error::ErrorRow,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

/// Writes the error object. Only errors about the request have details. The message is fixed, so the details
/// name an unknown method and the suggested one.
pub fn encode(writer: &mut Writer, error: &Error) {
    let row = error.kind.row();
    writer.object(|writer| {
        error::encode_head(writer, error, &row);
        let of_request = matches!(row.legacy_code, -32602 | -32600);
        if of_request
            || row.legacy_code == -32601 && error.violations.iter().any(|wrong| !wrong.field.is_empty())
        {
            error::encode_details(writer.key("data"), error);
        }
    });
}

/// Reads an error object.
pub fn decode(node: Node<'_, '_>) -> Read<Error> {
    error::decode(node, by_code)
}

/// A code shared by several rows means the first of them. Codes that exist in 1.0 only are recognised too;
/// the catch-all code identifies no specific error.
fn by_code(code: i32) -> Option<ErrorKind> {
    const CATCH_ALL: i32 = -32_000;
    let find = |has: fn(&ErrorRow) -> i32| ErrorKind::ALL.into_iter().find(|kind| has(&kind.row()) == code);
    if code == CATCH_ALL { None } else { find(|row| row.legacy_code).or_else(|| find(|row| row.code)) }
}
