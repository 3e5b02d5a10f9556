//! The error object of JSON-RPC answers: clients compare its text, so the details stand beside it.

use crate::{
    Error, ErrorKind, Violation,
    error::Row,
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
};

/// Writes the code and its fixed text.
pub(crate) fn encode_head(writer: &mut Writer, error: &Error, row: &Row) {
    writer.key("code").int(i64::from(error.legacy_code.unwrap_or(row.legacy_code)));
    writer.text("message", row.legacy_message);
}

/// Writes what is wrong: each field at fault, or else what the caller is told.
pub(crate) fn encode_details(writer: &mut Writer, error: &Error) {
    let told = [Violation { field: String::new(), problem: error.message.clone() }];
    let violations = if error.violations.is_empty() { &told[..] } else { &error.violations };
    writer.object(|writer| {
        writer.key("errors").array(violations, |writer, violation| {
            writer.object(|writer| {
                writer.text("field", &violation.field);
                writer.text("message", &violation.problem);
            });
        });
    });
}

/// Reads an error object. A code with the text that belongs to it says which error it is; where peers have
/// words of their own, `by_code` says.
pub(crate) fn decode(node: Node<'_, '_>, by_code: fn(i32) -> Option<ErrorKind>) -> Read<Error> {
    let object = node.object()?;
    let code = object.need("code", "an integer", |node| node.int32())?;
    let message = object.text_or_empty("message")?;
    let exact = ErrorKind::ALL.into_iter().find(|kind| {
        let row = kind.row();
        row.legacy_code == code && row.legacy_message == message
    });
    let kind = exact.or_else(|| by_code(code)).unwrap_or(ErrorKind::Internal);
    // Peers put all kinds of things into `data`; only what looks like ours is looked at.
    let details =
        object.maybe("data", |node| decode_details(&node.object()?)).ok().flatten().unwrap_or_default();
    Ok(match &details[..] {
        [told] if told.field.is_empty() => Error::new(kind, told.problem.clone()),
        _ => Error { violations: details, ..Error::new(kind, message) },
    })
}

fn decode_details(data: &Object<'_, '_>) -> Read<Vec<Violation>> {
    data.list("errors", |node| {
        let object = node.object()?;
        Ok(Violation { field: object.text_or_empty("field")?, problem: object.text_or_empty("message")? })
    })
}
