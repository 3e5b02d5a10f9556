//! Checks whether a response is what a case expects; describes the fault in one sentence otherwise.

use super::super::checker::INTERNALS;
use super::case::{Case, Expected, Refusal, Service};
use super::channel::Received;
use super::methods::{Method, ValidOutcome};
use super::wire::{Payload, fields};

/// Header size that every client accepts.
const LONGEST_BYTES: usize = 8 * 1024;

/// What is wrong with the response, if anything.
pub(crate) fn fault(case: &Case, method: &Method, received: &Received) -> Option<String> {
    let verdict = match (&case.expected, method.valid_outcome) {
        (Expected::Refused(refusal), _) => refused(refusal, received),
        (Expected::Accepted(why), ValidOutcome::Refused(reason)) => {
            let refusal = Refusal::new(reason, method.service);
            refused(&refusal, received).map_err(|fault| format!("{fault}, although {why}"))
        }
        (Expected::Accepted(why), valid_outcome) => {
            accepted(valid_outcome, received).map_err(|fault| format!("{fault}, although {why}"))
        }
    };
    verdict.err().map(|fault| format!("{fault}; got {}", received.shown()))
}

fn accepted(valid_outcome: ValidOutcome, received: &Received) -> Result<(), String> {
    if received.http != 200 || received.content_type != "application/grpc" || received.status != "0" {
        return Err("expected 200 application/grpc and OK".to_owned());
    }
    let count =
        messages(&received.body).ok_or_else(|| "the body is not a sequence of messages".to_owned())?;
    let right = if matches!(valid_outcome, ValidOutcome::Stream) { count > 0 } else { count == 1 };
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

/// Checks every part of an error response.
fn refused(wanted: &Refusal, received: &Received) -> Result<(), String> {
    if received.http != wanted.http {
        return Err(format!("expected HTTP {}", wanted.http));
    }
    if received.content_type != "application/grpc" || !received.body.is_empty() {
        return Err("expected application/grpc and no message".to_owned());
    }
    if received.status != wanted.code().to_string() {
        let named = wanted.field.as_ref().map_or(String::new(), |field| format!(" at {field}"));
        return Err(format!("expected the status {} {}{named}", wanted.code(), wanted.reason.name));
    }
    let details = received.details.as_deref().ok_or_else(|| "expected details".to_owned())?;
    if received.message.len() + details.len() > LONGEST_BYTES {
        return Err(format!("{} bytes are too long for an error", received.message.len() + details.len()));
    }
    sentence(&received.message)?;
    let shown = [received.message.as_bytes(), details].concat();
    let shown = String::from_utf8_lossy(&shown);
    if let Some(inside) = INTERNALS.iter().find(|inside| shown.contains(**inside)) {
        return Err(format!("the response reveals {inside:?}"));
    }
    if wanted.error_format == Service::V03 && !received.message.starts_with(wanted.reason.old_text) {
        return Err(format!("expected a message that begins with {:?}", wanted.reason.old_text));
    }
    let details =
        Details::read(details).ok_or_else(|| "the details are not a google.rpc.Status".to_owned())?;
    details.check(wanted, received)
}

/// One non-empty line without a full stop. Names chosen by a caller are repeated unchanged.
fn sentence(text: &str) -> Result<(), String> {
    let clean = !text.chars().any(|character| matches!(character, '\n' | '\r'));
    if text.trim().is_empty() || text.ends_with('.') || !clean && !text.contains("not found") {
        return Err("expected one sentence".to_owned());
    }
    Ok(())
}

/// The decoded `grpc-status-details-bin`.
#[derive(Default)]
struct Details {
    code: u64,
    message: String,
    /// Type and bytes of each detail.
    parts: Vec<(String, Vec<u8>)>,
}

impl Details {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut details = Self::default();
        for field in fields(bytes)? {
            match field {
                (1, Payload::Number(code)) => details.code = code,
                (2, Payload::Bytes(message)) => details.message = String::from_utf8(message.to_vec()).ok()?,
                (3, Payload::Bytes(part)) => details.parts.push((text(part, 1)?, bytes_of(part, 2)?)),
                _ => return None,
            }
        }
        Some(details)
    }

    fn check(&self, wanted: &Refusal, received: &Received) -> Result<(), String> {
        if self.code != u64::from(wanted.code()) || self.message != received.message {
            return Err("the details differ from the status".to_owned());
        }
        let info = self.part(0, "type.googleapis.com/google.rpc.ErrorInfo")?;
        if text(info, 2).as_deref() != Some("a2a-protocol.org") {
            return Err("expected the domain a2a-protocol.org".to_owned());
        }
        if text(info, 1).as_deref() != Some(wanted.reason.name) {
            return Err(format!("expected the reason {}", wanted.reason.name));
        }
        let Some(field) = &wanted.field else { return Ok(()) };
        let bad = self.part(1, "type.googleapis.com/google.rpc.BadRequest")?;
        let violation = bytes_of(bad, 1).unwrap_or_default();
        let named = text(&violation, 1).unwrap_or_default();
        sentence(&text(&violation, 2).unwrap_or_default())?;
        if named == *field && received.message.contains(field) {
            Ok(())
        } else {
            Err(format!("expected {field} to be named, not {named:?}"))
        }
    }

    fn part(&self, at: usize, kind: &str) -> Result<&[u8], String> {
        let part = self.parts.get(at).filter(|part| part.0 == kind);
        part.map(|part| &part.1[..]).ok_or_else(|| format!("expected {kind} at index {at} of the details"))
    }
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

impl Received {
    fn shown(&self) -> String {
        const SHOWN: usize = 200;
        let message: String = self.message.chars().take(SHOWN).collect();
        let fields = self.details.as_deref().and_then(Details::read).unwrap_or_default();
        let violation = fields.parts.get(1).and_then(|part| text(&bytes_of(&part.1, 1)?, 1));
        let reason = fields.parts.first().and_then(|part| text(&part.1, 1)).unwrap_or_default();
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(80)]).into_owned();
        format!(
            "{} {} {} {reason} at {violation:?} {message:?} {body:?}",
            self.http, self.content_type, self.status
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::{INVALID_PARAMS, TASK_NOT_FOUND};
    use super::super::wire::{bytes, int};
    use super::*;

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
            body: Vec::new(),
        }
    }

    #[test]
    fn valid_error_passes_and_each_fault_is_found() {
        let mut wanted = Refusal::new(INVALID_PARAMS, Service::V1);
        wanted.field = Some("id".to_owned());
        let text = "id: expected a string";
        assert_eq!(refused(&wanted, &received(3, "INVALID_PARAMS", "id", text)), Ok(()));
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
            assert!(refused(&wanted, &wrong).is_err(), "{wrong:?}");
        }
        let old = Refusal::new(TASK_NOT_FOUND, Service::V03);
        assert_eq!(refused(&old, &received(5, "TASK_NOT_FOUND", "", "Task not found: t")), Ok(()));
        assert!(refused(&old, &received(5, "TASK_NOT_FOUND", "", "task not found: t")).is_err());
    }

    #[test]
    fn number_of_messages_must_match_the_method() {
        let well =
            |body: &[u8]| Received { status: "0".to_owned(), body: body.to_vec(), ..received(0, "", "", "") };
        assert_eq!(accepted(ValidOutcome::Message, &well(b"\0\0\0\0\x01x")), Ok(()));
        assert_eq!(accepted(ValidOutcome::Stream, &well(b"\0\0\0\0\x01x\0\0\0\0\x01x")), Ok(()));
        for wrong in [&b""[..], b"\0\0\0\0\x01x\0\0\0\0\x01x", b"\x01\0\0\0\x01x", b"\0\0\0\0\x02x", b"\0"] {
            assert!(accepted(ValidOutcome::Message, &well(wrong)).is_err(), "{wrong:?}");
        }
    }
}
