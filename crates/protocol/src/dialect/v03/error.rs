//! The error object of JSON-RPC answers.

use crate::{
    Error, ErrorKind,
    dialect::legacy::error,
    error::Row,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

/// Writes the error object. Only what is wrong with a request has details; its message is fixed, so they name an unknown
/// method and the one that was probably meant.
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

/// A code that several rows share means the first of them. The codes that only 1.0 has are known from there;
/// the catch-all code means nothing in particular.
fn by_code(code: i32) -> Option<ErrorKind> {
    const CATCH_ALL: i32 = -32_000;
    let find = |has: fn(&Row) -> i32| ErrorKind::ALL.into_iter().find(|kind| has(&kind.row()) == code);
    if code == CATCH_ALL { None } else { find(|row| row.legacy_code).or_else(|| find(|row| row.code)) }
}
