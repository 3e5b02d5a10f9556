//! Whether an answer is what a case expects, in one sentence when it is not.

use super::super::judge::INSIDES;
use super::case::{Case, Expected, Refusal, Service};
use super::channel::Told;
use super::methods::{Method, Sound};
use super::wire::{Payload, fields};

/// What a head may hold that every client reads.
const LONGEST_BYTES: usize = 8 * 1024;

/// What is wrong with the answer, if anything is.
pub(crate) fn fault(case: &Case, method: &Method, told: &Told) -> Option<String> {
    let verdict = match (&case.expected, method.sound) {
        (Expected::Refused(refusal), _) => refused(refusal, told),
        (Expected::Taken(why), Sound::Refused(reason)) => {
            let refusal = Refusal::new(reason, method.service);
            refused(&refusal, told).map_err(|fault| format!("{fault}, though {why}"))
        }
        (Expected::Taken(why), sound) => taken(sound, told).map_err(|fault| format!("{fault}, though {why}")),
    };
    verdict.err().map(|fault| format!("{fault}; answered {}", told.shown()))
}

fn taken(sound: Sound, told: &Told) -> Result<(), String> {
    if told.http != 200 || told.content_type != "application/grpc" || told.status != "0" {
        return Err("wanted 200 application/grpc and OK".to_owned());
    }
    let count = messages(&told.body).ok_or_else(|| "the body is no messages".to_owned())?;
    let right = if matches!(sound, Sound::Stream) { count > 0 } else { count == 1 };
    if right { Ok(()) } else { Err(format!("{count} messages are another number")) }
}

/// How many messages a body is.
fn messages(mut body: &[u8]) -> Option<usize> {
    let mut count = 0;
    while let Some((prefix, rest)) = body.split_first_chunk::<5>() {
        let [flag, length @ ..] = *prefix;
        let (message, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(length)).ok()?)?;
        // What is sent is protobuf; anything can be told of it only where it is.
        if flag != 0 || message.is_empty() {
            return None;
        }
        body = rest;
        count += 1;
    }
    body.is_empty().then_some(count)
}

/// Checks a refusal in every respect.
fn refused(wanted: &Refusal, told: &Told) -> Result<(), String> {
    if told.http != wanted.http {
        return Err(format!("wanted HTTP {}", wanted.http));
    }
    if told.content_type != "application/grpc" || !told.body.is_empty() {
        return Err("wanted application/grpc and no message".to_owned());
    }
    if told.status != wanted.code().to_string() {
        let named = wanted.field.as_ref().map_or(String::new(), |field| format!(" at {field}"));
        return Err(format!("wanted the status {} {}{named}", wanted.code(), wanted.reason.word));
    }
    let details = told.details.as_deref().ok_or_else(|| "wanted details".to_owned())?;
    if told.message.len() + details.len() > LONGEST_BYTES {
        return Err(format!("{} bytes are no sentence", told.message.len() + details.len()));
    }
    sentence(&told.message)?;
    let shown = [told.message.as_bytes(), details].concat();
    let shown = String::from_utf8_lossy(&shown);
    if let Some(inside) = INSIDES.iter().find(|inside| shown.contains(**inside)) {
        return Err(format!("the answer shows {inside:?}"));
    }
    if wanted.words == Service::V03 && !told.message.starts_with(wanted.reason.old_text) {
        return Err(format!("wanted a message that begins with {:?}", wanted.reason.old_text));
    }
    let details = Details::read(details).ok_or_else(|| "the details are no google.rpc.Status".to_owned())?;
    details.check(wanted, told)
}

/// One line with something in it and no full stop. Names that a caller made up are repeated as they are.
fn sentence(text: &str) -> Result<(), String> {
    let clean = !text.chars().any(|character| matches!(character, '\n' | '\r'));
    if text.trim().is_empty() || text.ends_with('.') || !clean && !text.contains("not found") {
        return Err("wanted one sentence".to_owned());
    }
    Ok(())
}

/// What `grpc-status-details-bin` says.
#[derive(Default)]
struct Details {
    code: u64,
    message: String,
    /// Each detail: of which type, and its bytes.
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

    fn check(&self, wanted: &Refusal, told: &Told) -> Result<(), String> {
        if self.code != u64::from(wanted.code()) || self.message != told.message {
            return Err("the details say something else than the status".to_owned());
        }
        let info = self.part(0, "type.googleapis.com/google.rpc.ErrorInfo")?;
        if text(info, 2).as_deref() != Some("a2a-protocol.org") {
            return Err("wanted the domain a2a-protocol.org".to_owned());
        }
        if text(info, 1).as_deref() != Some(wanted.reason.word) {
            return Err(format!("wanted the reason {}", wanted.reason.word));
        }
        let Some(field) = &wanted.field else { return Ok(()) };
        let bad = self.part(1, "type.googleapis.com/google.rpc.BadRequest")?;
        let violation = bytes_of(bad, 1).unwrap_or_default();
        let named = text(&violation, 1).unwrap_or_default();
        sentence(&text(&violation, 2).unwrap_or_default())?;
        if named == *field && told.message.contains(field) {
            Ok(())
        } else {
            Err(format!("wanted {field} to be named, not {named:?}"))
        }
    }

    fn part(&self, at: usize, kind: &str) -> Result<&[u8], String> {
        let part = self.parts.get(at).filter(|part| part.0 == kind);
        part.map(|part| &part.1[..]).ok_or_else(|| format!("wanted {kind} in place {at} of the details"))
    }
}

/// The first field of this number.
fn bytes_of(message: &[u8], number: u64) -> Option<Vec<u8>> {
    fields(message)?.into_iter().find_map(|field| match field {
        (found, Payload::Bytes(bytes)) if found == number => Some(bytes.to_vec()),
        _ => None,
    })
}

fn text(message: &[u8], number: u64) -> Option<String> {
    String::from_utf8(bytes_of(message, number)?).ok()
}

impl Told {
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

    fn told(code: i64, reason: &str, field: &str, message: &str) -> Told {
        let info = [bytes(1, reason), bytes(2, "a2a-protocol.org")].concat();
        let bad = bytes(1, [bytes(1, field), bytes(2, "expected a string")].concat());
        let any = |kind: &str, value| {
            bytes(3, [bytes(1, format!("type.googleapis.com/google.rpc.{kind}")), bytes(2, value)].concat())
        };
        let details =
            [int(1, code), bytes(2, message), any("ErrorInfo", info), any("BadRequest", bad)].concat();
        Told {
            http: 200,
            content_type: "application/grpc".to_owned(),
            status: code.to_string(),
            message: message.to_owned(),
            details: Some(details),
            body: Vec::new(),
        }
    }

    #[test]
    fn a_right_refusal_passes_and_each_fault_is_found() {
        let mut wanted = Refusal::new(INVALID_PARAMS, Service::V1);
        wanted.field = Some("id".to_owned());
        let text = "id: expected a string";
        assert_eq!(refused(&wanted, &told(3, "INVALID_PARAMS", "id", text)), Ok(()));
        for wrong in [
            told(13, "INVALID_PARAMS", "id", text),
            told(3, "INVALID_REQUEST", "id", text),
            told(3, "INVALID_PARAMS", "name", text),
            told(3, "INVALID_PARAMS", "id", ""),
            told(3, "INVALID_PARAMS", "id", "id: two\nlines"),
            told(3, "INVALID_PARAMS", "id", "id: panicked at src/main.rs:7"),
            Told { http: 500, ..told(3, "INVALID_PARAMS", "id", text) },
            Told { content_type: "application/json".to_owned(), ..told(3, "INVALID_PARAMS", "id", text) },
            Told { body: vec![0; 5], ..told(3, "INVALID_PARAMS", "id", text) },
            Told { message: "id: something else".to_owned(), ..told(3, "INVALID_PARAMS", "id", text) },
            Told { details: None, ..told(3, "INVALID_PARAMS", "id", text) },
        ] {
            assert!(refused(&wanted, &wrong).is_err(), "{wrong:?}");
        }
        let old = Refusal::new(TASK_NOT_FOUND, Service::V03);
        assert_eq!(refused(&old, &told(5, "TASK_NOT_FOUND", "", "Task not found: t")), Ok(()));
        assert!(refused(&old, &told(5, "TASK_NOT_FOUND", "", "task not found: t")).is_err());
    }

    #[test]
    fn a_good_answer_has_as_many_messages_as_its_method() {
        let well = |body: &[u8]| Told { status: "0".to_owned(), body: body.to_vec(), ..told(0, "", "", "") };
        assert_eq!(taken(Sound::Message, &well(b"\0\0\0\0\x01x")), Ok(()));
        assert_eq!(taken(Sound::Stream, &well(b"\0\0\0\0\x01x\0\0\0\0\x01x")), Ok(()));
        for wrong in [&b""[..], b"\0\0\0\0\x01x\0\0\0\0\x01x", b"\x01\0\0\0\x01x", b"\0\0\0\0\x02x", b"\0"] {
            assert!(taken(Sound::Message, &well(wrong)).is_err(), "{wrong:?}");
        }
    }
}
