//! The error object of JSON-RPC responses. Clients compare its message, so the details are in `data`.

use crate::{
    Error, ErrorKind, Violation,
    error::ErrorRow,
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
};

/// Writes the code and its fixed message.
pub(crate) fn encode_head(writer: &mut Writer, error: &Error, row: &ErrorRow) {
    writer.key("code").int(i64::from(error.legacy_code.unwrap_or(row.legacy_code)));
    writer.text("message", row.legacy_message);
}

/// Writes the details: the invalid fields, else the message for the caller.
pub(crate) fn encode_details(writer: &mut Writer, error: &Error) {
    let general = [Violation { field: String::new(), problem: error.message.clone() }];
    let violations = if error.violations.is_empty() { &general[..] } else { &error.violations };
    writer.object(|writer| {
        writer.key("errors").array(violations, |writer, violation| {
            writer.object(|writer| {
                writer.text("field", &violation.field);
                writer.text("message", &violation.problem);
            });
        });
    });
}

/// Reads an error object. The code together with its fixed message identifies the error; for any other
/// message `by_code` decides.
pub(crate) fn decode(node: Node<'_, '_>, by_code: fn(i32) -> Option<ErrorKind>) -> Read<Error> {
    let object = node.object()?;
    let code = object.need("code", "an integer", |node| node.int32())?;
    let message = object.text_or_empty("message")?;
    let exact = ErrorKind::ALL.into_iter().find(|kind| {
        let row = kind.row();
        row.legacy_code == code && row.legacy_message == message
    });
    let kind = exact.or_else(|| by_code(code)).unwrap_or(ErrorKind::Internal);
    // Other implementations put arbitrary values into `data`; only the known form is read.
    let details =
        object.maybe("data", |node| decode_details(&node.object()?)).ok().flatten().unwrap_or_default();
    Ok(match &details[..] {
        [general] if general.field.is_empty() => Error::new(kind, general.problem.clone()),
        _ => Error { violations: details, ..Error::new(kind, message) },
    })
}

fn decode_details(data: &Object<'_, '_>) -> Read<Vec<Violation>> {
    data.list("errors", |node| {
        let object = node.object()?;
        Ok(Violation { field: object.text_or_empty("field")?, problem: object.text_or_empty("message")? })
    })
}
