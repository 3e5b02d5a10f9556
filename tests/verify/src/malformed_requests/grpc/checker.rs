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
