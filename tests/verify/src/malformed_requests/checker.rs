//! Checks whether a response is what a case expects; describes the fault in one sentence otherwise.

use serde_json::Value;

use super::case::{Binding, Case, ExpectedId, Refusal, ValidOutcome};
use super::errors::{Dialect, ErrorRow, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE};
use super::grpc::checker as grpc;
use super::methods::ID;
use super::rest::checker as rest;

/// A response as received.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) http: u16,
    pub(crate) content_type: String,
    pub(crate) allow: Option<String>,
    pub(crate) body: Vec<u8>,
    /// `grpc-status` of the trailers, or of the headers in a trailers-only response.
    pub(crate) status: String,
    pub(crate) message: String,
    pub(crate) details: Option<Vec<u8>>,
}

/// Texts that must not appear in a response because they reveal internals of the program.
const INTERNALS: &[&str] =
    &["panicked", "backtrace", ".rs:", "/crates/", "/home/", "rusqlite", "serde", "store.db", "thread '"];
/// Longer than any error about a request, shorter than a text a client could make the server repeat.
const LONGEST_BYTES: usize = 4 * 1024;

/// What is wrong with the response, if anything.
pub(crate) fn fault(case: &Case, received: &Received) -> Option<String> {
    let verdict = match (&case.refusal, case.valid_outcome) {
        (Some(refusal), _) => refused(case, refusal, received),
        (None, ValidOutcome::Refused(error)) => {
            refused(case, &Refusal::new(case.binding, case.dialect, error), received)
        }
        (None, ValidOutcome::Result) => accepted(case, false, received),
        (None, ValidOutcome::Events) => accepted(case, true, received),
    };
    verdict.err().map(|fault| format!("{fault}; got {}", received.shown()))
}

/// The media type of a response that is not a stream of events.
fn media_type(case: &Case) -> &'static str {
    match case.binding {
        Binding::JsonRpc => "application/json",
        Binding::HttpJson => rest::media_type(case),
        Binding::Grpc => "application/grpc",
    }
}

fn accepted(case: &Case, events: bool, received: &Received) -> Result<(), String> {
    let is_sse = events && case.binding != Binding::Grpc;
    let wanted = if is_sse { "text/event-stream" } else { media_type(case) };
    if received.http != 200 || received.content_type != wanted {
        return Err(format!("expected 200 {wanted}"));
    }
    let found = |text: &[u8]| received.body.windows(text.len()).any(|window| window == text);
    let right = match case.binding {
        Binding::Grpc => return grpc::accepted(events, received),
        Binding::JsonRpc => found(b"\"result\":") && !found(b"\"error\":{\"code\":"),
        Binding::HttpJson => {
            let body = if events { found(b"data: {\"") } else { received.body.starts_with(b"{\"") };
            body && !found(b"{\"error\":{\"code\":") && !found(b"{\"code\":")
        }
    };
    if right { Ok(()) } else { Err("expected a result".to_owned()) }
}

/// Checks every part of an error response.
fn refused(case: &Case, wanted: &Refusal, received: &Received) -> Result<(), String> {
    if received.http != wanted.http {
        return Err(format!("expected HTTP {} {}", wanted.http, wanted.shown()));
    }
    let media_type = media_type(case);
    if received.content_type != media_type {
        return Err(format!("expected {media_type}"));
    }
    match case.binding {
        Binding::JsonRpc => as_json_rpc(wanted, &read(received)?),
        Binding::HttpJson => rest::refused(wanted, received),
        Binding::Grpc => grpc::refused(wanted, received),
    }
}

fn as_json_rpc(wanted: &Refusal, response: &Value) -> Result<(), String> {
    let names = ["jsonrpc", "id", "error"];
    let members = response.as_object().filter(|members| members.len() == names.len());
    if !members.is_some_and(|members| names.iter().all(|name| members.contains_key(*name)))
        || response["jsonrpc"] != "2.0"
    {
        return Err("expected jsonrpc, id and error".to_owned());
    }
    if !id_matches(wanted.id, &response["id"]) {
        return Err("the id differs".to_owned());
    }
    let error = &response["error"];
    if error["code"] != wanted.error.code(wanted.shape) {
        return Err(format!("expected {} {}", wanted.error.code(wanted.shape), wanted.shown()));
    }
    match wanted.shape {
        Dialect::V1 => as_v1(wanted, &error["message"], &error["data"]),
        Dialect::V03 => as_v03(wanted, error),
        Dialect::Draft => as_draft(wanted, error),
    }
}

impl Refusal {
    /// The error for findings.
    pub(crate) fn shown(&self) -> String {
        let at = self.field.as_ref().map_or(String::new(), |field| format!(" at {field:?}"));
        format!("{}{at}", self.error.reason)
    }
}

/// Parses an error response; it must be short and must not reveal internals.
pub(crate) fn read(received: &Received) -> Result<Value, String> {
    let text = std::str::from_utf8(&received.body).map_err(|_| "the response is not UTF-8".to_owned())?;
    reveals_nothing(text, LONGEST_BYTES)?;
    serde_json::from_str(text).map_err(|_| "the response is not JSON".to_owned())
}

/// Checks that an error is not too long and does not reveal internals.
pub(crate) fn reveals_nothing(text: &str, longest_bytes: usize) -> Result<(), String> {
    if text.len() > longest_bytes {
        return Err(format!("{} bytes are too long for an error", text.len()));
    }
    match INTERNALS.iter().find(|inside| text.contains(**inside)) {
        Some(inside) => Err(format!("the response reveals {inside:?}")),
        None => Ok(()),
    }
}

/// Whether the named field is the expected one. A skill may be named by either of its two locations.
fn names(named: &str, field: &str) -> bool {
    const SKILL: [&str; 2] = ["skill", "configuration.skillId"];
    named == field || SKILL.contains(&named) && SKILL.contains(&field)
}

/// The format of 1.0: typed details, ErrorInfo first, then the faulty fields.
pub(crate) fn as_v1(wanted: &Refusal, message: &Value, details: &Value) -> Result<(), String> {
    let info = &details[0];
    let strings = info["metadata"].as_object().is_some_and(|facts| facts.values().all(Value::is_string));
    if info["@type"] != "type.googleapis.com/google.rpc.ErrorInfo" || info["domain"] != "a2a-protocol.org" {
        return Err("expected ErrorInfo first".to_owned());
    }
    if info["reason"] != wanted.error.reason || !strings {
        return Err(format!("expected {} and metadata with string values", wanted.error.reason));
    }
    let message = sentence(message)?;
    let Some(field) = wanted.field.as_deref() else { return Ok(()) };
    let bad = &details[1];
    if bad["@type"] != "type.googleapis.com/google.rpc.BadRequest" {
        return Err("expected BadRequest second".to_owned());
    }
    let violation = &bad["fieldViolations"][0];
    if sentence(&violation["description"])?.ends_with('.') {
        return Err("expected a description without a full stop".to_owned());
    }
    let named = violation["field"].as_str().unwrap_or("no field");
    if !names(named, field) || !message.contains(named) {
        return Err(format!("expected {field:?} to be named"));
    }
    Ok(())
}

/// The format of 0.3: fixed messages; details only for errors in the request.
pub(crate) fn as_v03(wanted: &Refusal, error: &Value) -> Result<(), String> {
    fixed_text(wanted.error, error)?;
    let code = wanted.error.code(wanted.shape);
    match error.get("data") {
        data if is_invalid(code) => details(wanted.field.as_deref(), data.unwrap_or(&Value::Null)),
        // For an unknown method the details name it and the most similar one.
        Some(data) if wanted.error == METHOD_NOT_FOUND => details(Some("method"), data),
        Some(_) => Err("expected no data".to_owned()),
        None => Ok(()),
    }
}

/// The format of the draft: fixed messages; `data` is always present.
fn as_draft(wanted: &Refusal, error: &Value) -> Result<(), String> {
    fixed_text(wanted.error, error)?;
    match error.get("data") {
        None => Err("expected data".to_owned()),
        Some(data) if wanted.error == PARSE || is_invalid(wanted.error.code(wanted.shape)) => {
            details(wanted.field.as_deref(), data)
        }
        Some(data) if data.is_null() => Ok(()),
        Some(_) => Err("expected data to be null".to_owned()),
    }
}

fn is_invalid(code: i64) -> bool {
    [INVALID_PARAMS, INVALID_REQUEST].iter().any(|error| error.code(Dialect::V03) == code)
}

fn fixed_text(error: &ErrorRow, received: &Value) -> Result<(), String> {
    let text = error.old_text;
    if received["message"] == text { Ok(()) } else { Err(format!("expected the text {text:?}")) }
}

fn details(field: Option<&str>, data: &Value) -> Result<(), String> {
    let first = &data["errors"][0];
    sentence(&first["message"])?;
    match field {
        Some(field) if !first["field"].as_str().is_some_and(|named| names(named, field)) => {
            Err(format!("expected {field:?} to be named"))
        }
        _ => Ok(()),
    }
}

/// One non-empty line without a full stop. The message for an unknown task ends with its id, which may be any text.
pub(crate) fn sentence(text: &Value) -> Result<&str, String> {
    let text = text.as_str().unwrap_or_default();
    let clean = !text.ends_with('.') && !text.contains(['\n', '\r']);
    if text.trim().is_empty() || !clean && !text.contains("not found") {
        return Err("expected one sentence".to_owned());
    }
    Ok(text)
}

fn id_matches(wanted: ExpectedId, id: &Value) -> bool {
    match wanted {
        ExpectedId::Own => *id == ID.trim_matches('"'),
        ExpectedId::Null => id.is_null(),
        ExpectedId::Either => true,
    }
}

impl Received {
    fn shown(&self) -> String {
        const SHOWN: usize = 300;
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(SHOWN)]);
        let head = format!("{} {} {}", self.http, self.content_type, body.escape_debug());
        if self.status.is_empty() { head } else { format!("{head} {}", grpc::shown(self)) }
    }
}
