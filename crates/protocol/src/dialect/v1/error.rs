//! Errors with typed details: the error object of JSON-RPC responses (A2A 9.5) and the body of HTTP+JSON
//! error responses (A2A 11.6).

use crate::{
    Error, ErrorKind, ErrorTable, Timestamp, Violation,
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
};

pub(crate) const DOMAIN: &str = "a2a-protocol.org";
pub(crate) const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
pub(crate) const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// Writes the error object.
pub fn encode(writer: &mut Writer, error: &Error, now: Timestamp) {
    let row = error.kind.row();
    writer.object(|writer| {
        writer.key("code").int(i64::from(row.code));
        writer.text("message", &error.message);
        writer.key("data");
        encode_details(writer, error, now);
    });
}

/// Writes the body of an HTTP+JSON error response with this status.
pub fn encode_status(writer: &mut Writer, error: &Error, http: u16, table: ErrorTable, now: Timestamp) {
    writer.object(|writer| {
        writer.key("error").object(|writer| {
            writer.key("code").int(i64::from(http));
            writer.text("status", error.kind.row().grpc_of(table).name());
            writer.text("message", &error.message);
            writer.key("details");
            encode_details(writer, error, now);
        });
    });
}

/// Writes the details: ErrorInfo first, then the invalid fields.
pub fn encode_details(writer: &mut Writer, error: &Error, now: Timestamp) {
    let bad_request = !error.violations.is_empty();
    writer.array([false, true].into_iter().take(1 + usize::from(bad_request)), |writer, fields| {
        if fields { encode_violations(writer, &error.violations) } else { encode_info(writer, error, now) }
    });
}

fn encode_info(writer: &mut Writer, error: &Error, now: Timestamp) {
    writer.object(|writer| {
        writer.text("@type", ERROR_INFO);
        writer.text("reason", error.kind.row().reason);
        writer.text("domain", DOMAIN);
        writer.key("metadata").object(|writer| {
            for (name, value) in &error.facts {
                writer.text(name, value);
            }
            writer.text("timestamp", &now.to_string());
        });
    });
}

fn encode_violations(writer: &mut Writer, violations: &[Violation]) {
    writer.object(|writer| {
        writer.text("@type", BAD_REQUEST);
        writer.key("fieldViolations").array(violations, |writer, violation| {
            writer.object(|writer| {
                writer.text("field", &violation.field);
                writer.text("description", &violation.problem);
            });
        });
    });
}

/// Reads an error object. The reason identifies the error, else the code. Other ErrorInfo metadata is
/// dropped.
pub fn decode(node: Node<'_, '_>) -> Read<Error> {
    read(&node.object()?, "data", by_code)
}

/// Reads the body of an HTTP+JSON error response. The reason identifies the error, else the status.
pub fn decode_status(node: Node<'_, '_>) -> Read<Error> {
    let object = node.object()?;
    object.need("error", "an object", |node| read(&node.object()?, "details", by_status))
}

fn read(object: &Object<'_, '_>, details: &str, by_number: fn(i32) -> Option<ErrorKind>) -> Read<Error> {
    let code = object.need("code", "an integer", |node| node.int32())?;
    let message = object.text_or_empty("message")?;
    let mut reason = None;
    let mut violations = Vec::new();
    // Other implementations put arbitrary values there; only typed details are read.
    let _ = object.list(details, |node| {
        let Ok(detail) = node.object() else { return Ok(()) };
        let is = |name: &str, value: &str| detail.text(name).is_ok_and(|text| text.as_deref() == Some(value));
        if is("@type", ERROR_INFO) && is("domain", DOMAIN) {
            reason = detail.text("reason").ok().flatten();
        } else if is("@type", BAD_REQUEST) {
            violations = decode_violations(&detail).unwrap_or_default();
        }
        Ok(())
    });
    let kind =
        reason.as_deref().and_then(by_reason).or_else(|| by_number(code)).unwrap_or(ErrorKind::Internal);
    Ok(Error { violations, ..Error::new(kind, message) })
}

/// The error with this reason.
pub(crate) fn by_reason(reason: &str) -> Option<ErrorKind> {
    ErrorKind::ALL.into_iter().find(|kind| kind.row().reason == reason)
}

/// A code shared by several rows means the first of them; the catch-all code identifies no specific error.
fn by_code(code: i32) -> Option<ErrorKind> {
    const CATCH_ALL: i32 = -32_000;
    ErrorKind::ALL.into_iter().find(|kind| kind.row().code == code && code != CATCH_ALL)
}

/// Maps HTTP statuses to errors; any other client error means an invalid request.
fn by_status(status: i32) -> Option<ErrorKind> {
    match status {
        401 => Some(ErrorKind::Unauthenticated),
        403 => Some(ErrorKind::PermissionDenied),
        404 => Some(ErrorKind::TaskNotFound),
        405 => Some(ErrorKind::MethodNotFound),
        408 | 504 => Some(ErrorKind::DeadlineExceeded),
        413 => Some(ErrorKind::BodyTooLarge),
        415 => Some(ErrorKind::UnsupportedMediaType),
        429 => Some(ErrorKind::RateLimited),
        503 => Some(ErrorKind::Unavailable),
        400..=499 => Some(ErrorKind::InvalidRequest),
        _ => None,
    }
}

fn decode_violations(detail: &Object<'_, '_>) -> Read<Vec<Violation>> {
    detail.list("fieldViolations", |node| {
        let object = node.object()?;
        Ok(Violation { field: object.text_or_empty("field")?, problem: object.text_or_empty("description")? })
    })
}
