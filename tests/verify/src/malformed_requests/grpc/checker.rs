//! The rules for gRPC responses.

use serde_json::{Value, json};

use super::super::case::Refusal;
use super::super::checker::{Received, as_v1, reveals_nothing, sentence};
use super::super::errors::Dialect;
use super::wire::{Payload, fields};

/// Header size that every client accepts.
const LONGEST_BYTES: usize = 8 * 1024;

/// Checks the status and the number of messages.
pub(crate) fn accepted(stream: bool, received: &Received) -> Result<(), String> {
    if received.status != "0" {
        return Err("expected the status OK".to_owned());
    }
    let count =
        messages(&received.body).ok_or_else(|| "the body is not a sequence of messages".to_owned())?;
    let right = if stream { count > 0 } else { count == 1 };
    if right { Ok(()) } else { Err(format!("{count} messages, which is not the expected number")) }
}

/// The number of messages in a body.
fn messages(mut body: &[u8]) -> Option<usize> {
    let mut count = 0;
    while let Some((prefix, rest)) = body.split_first_chunk::<5>() {
        let [flag, length @ ..] = *prefix;
        let (message, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(length)).ok()?)?;
        // Compressed or empty messages are not valid responses here.
        if flag != 0 || message.is_empty() {
            return None;
        }
        body = rest;
        count += 1;
    }
    body.is_empty().then_some(count)
}

/// Checks the status, the message and the details of an error response.
pub(crate) fn refused(wanted: &Refusal, received: &Received) -> Result<(), String> {
    if !received.body.is_empty() {
        return Err("expected no message".to_owned());
    }
    if received.status != wanted.grpc_status().to_string() {
        return Err(format!("expected the status {} {}", wanted.grpc_status(), wanted.shown()));
    }
    let details = received.details.as_deref().ok_or_else(|| "expected details".to_owned())?;
    let shown = [received.message.as_bytes(), details].concat();
    if shown.len() > LONGEST_BYTES {
        return Err(format!("{} bytes are too long for an error", shown.len()));
    }
    reveals_nothing(&String::from_utf8_lossy(&shown), usize::MAX)?;
    let message = json!(received.message);
    if sentence(&message)?.ends_with('.') {
        return Err("expected a message without a full stop".to_owned());
    }
    let old_text = wanted.error.old_text;
    if wanted.shape != Dialect::V1 && !received.message.starts_with(old_text) {
        return Err(format!("expected a message that begins with {old_text:?}"));
    }
    let details = read(details).ok_or_else(|| "the details are not a google.rpc.Status".to_owned())?;
    if details["code"] != wanted.grpc_status() || details["message"] != message {
        return Err("the details differ from the status".to_owned());
    }
    as_v1(wanted, &message, &details["details"])
}

/// Decodes `grpc-status-details-bin` into the JSON form of a `google.rpc.Status`.
fn read(bytes: &[u8]) -> Option<Value> {
    let mut status = json!({"code": 0, "message": "", "details": []});
    for field in fields(bytes)? {
        match field {
            (1, Payload::Number(code)) => status["code"] = json!(code),
            (2, Payload::Bytes(message)) => {
                status["message"] = json!(String::from_utf8(message.to_vec()).ok()?)
            }
            (3, Payload::Bytes(part)) => {
                status["details"].as_array_mut()?.push(detail(&text(part, 1)?, &bytes_of(part, 2)?));
            }
            _ => return None,
        }
    }
    Some(status)
}

fn detail(kind: &str, value: &[u8]) -> Value {
    if kind.ends_with(".ErrorInfo") {
        return json!({"@type": kind, "reason": text(value, 1), "domain": text(value, 2), "metadata": {}});
    }
    let violation = bytes_of(value, 1).unwrap_or_default();
    let violation = json!({"field": text(&violation, 1), "description": text(&violation, 2)});
    json!({"@type": kind, "fieldViolations": [violation]})
}

/// The first field with this number.
fn bytes_of(message: &[u8], number: u64) -> Option<Vec<u8>> {
    fields(message)?.into_iter().find_map(|field| match field {
        (found, Payload::Bytes(bytes)) if found == number => Some(bytes.to_vec()),
        _ => None,
    })
}

fn text(message: &[u8], number: u64) -> Option<String> {
    String::from_utf8(bytes_of(message, number)?).ok()
}

/// The status and its details for findings.
pub(crate) fn shown(received: &Received) -> String {
    let details = received.details.as_deref().and_then(read).unwrap_or_default();
    format!("{} {:.200?} {}", received.status, received.message, details["details"])
}

#[cfg(test)]
mod tests {
    use super::super::super::checker::fault;
    use super::super::super::errors::{ErrorRow, INVALID_PARAMS, NO_TASK};
    use super::super::methods::{METHODS, good};
    use super::super::wire::{bytes, int};
    use super::*;

    fn checked(shape: Dialect, error: &'static ErrorRow, field: &str, received: &Received) -> Option<String> {
        let case = good(&METHODS[0], "t-1").refused("", error).in_dialect(shape);
        fault(&if field.is_empty() { case } else { case.naming_field(field) }, received)
    }

    fn received(code: i64, reason: &str, field: &str, message: &str) -> Received {
        let info = [bytes(1, reason), bytes(2, "a2a-protocol.org")].concat();
        let bad = bytes(1, [bytes(1, field), bytes(2, "expected a string")].concat());
        let any = |kind: &str, value| {
            bytes(3, [bytes(1, format!("type.googleapis.com/google.rpc.{kind}")), bytes(2, value)].concat())
        };
        let details =
            [int(1, code), bytes(2, message), any("ErrorInfo", info), any("BadRequest", bad)].concat();
        Received {
            http: 200,
            content_type: "application/grpc".to_owned(),
            status: code.to_string(),
            message: message.to_owned(),
            details: Some(details),
            ..Received::default()
        }
    }

    #[test]
    fn valid_error_passes_and_each_fault_is_found() {
        let checked_v1 = |received: &Received| checked(Dialect::V1, INVALID_PARAMS, "id", received);
        let text = "id: expected a string";
        assert_eq!(checked_v1(&received(3, "INVALID_PARAMS", "id", text)), None);
        for wrong in [
            received(13, "INVALID_PARAMS", "id", text),
            received(3, "INVALID_REQUEST", "id", text),
            received(3, "INVALID_PARAMS", "name", text),
            received(3, "INVALID_PARAMS", "id", ""),
            received(3, "INVALID_PARAMS", "id", "id: two\nlines"),
            received(3, "INVALID_PARAMS", "id", "id: panicked at src/main.rs:7"),
            Received { http: 500, ..received(3, "INVALID_PARAMS", "id", text) },
            Received {
                content_type: "application/json".to_owned(),
                ..received(3, "INVALID_PARAMS", "id", text)
            },
            Received { body: vec![0; 5], ..received(3, "INVALID_PARAMS", "id", text) },
            Received {
                message: "id: something else".to_owned(),
                ..received(3, "INVALID_PARAMS", "id", text)
            },
            Received { details: None, ..received(3, "INVALID_PARAMS", "id", text) },
        ] {
            assert!(checked_v1(&wrong).is_some(), "{wrong:?}");
        }
        let old = |message| checked(Dialect::V03, NO_TASK, "", &received(5, "TASK_NOT_FOUND", "", message));
        assert_eq!(old("Task not found: t"), None);
        assert!(old("task not found: t").is_some());
    }

    #[test]
    fn number_of_messages_must_match_the_method() {
        let well =
            |body: &[u8]| Received { status: "0".to_owned(), body: body.to_vec(), ..received(0, "", "", "") };
        assert_eq!(accepted(false, &well(b"\0\0\0\0\x01x")), Ok(()));
        assert_eq!(accepted(true, &well(b"\0\0\0\0\x01x\0\0\0\0\x01x")), Ok(()));
        for wrong in [&b""[..], b"\0\0\0\0\x01x\0\0\0\0\x01x", b"\x01\0\0\0\x01x", b"\0\0\0\0\x02x", b"\0"] {
            assert!(accepted(false, &well(wrong)).is_err(), "{wrong:?}");
        }
    }
}
