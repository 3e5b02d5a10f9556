//! Checks whether a response is what a case expects; describes the fault in one sentence otherwise.

use serde_json::Value;

use super::case::{
    Case, Expected, ExpectedId, ID, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE, Refusal,
};
use super::methods::{Dialect, ValidOutcome};

/// A response as received.
pub(crate) struct Received<'a> {
    pub(crate) status: u16,
    pub(crate) content_type: &'a str,
    pub(crate) body: &'a [u8],
}

/// Texts that must not appear in a response because they reveal internals of the program.
pub(crate) const INTERNALS: &[&str] =
    &["panicked", "backtrace", ".rs:", "/crates/", "/home/", "rusqlite", "serde", "store.db", "thread '"];
/// Longer than any error about a request, shorter than a text a client could make the server repeat.
const LONGEST_BYTES: usize = 4 * 1024;

/// Each code with the fixed message of the older generations and the reasons of 1.0.
const CODES: &[(i64, &str, &[&str])] = &[
    (-32700, "Invalid JSON payload", &["PARSE_ERROR"]),
    (-32600, "Request payload validation error", &["INVALID_REQUEST", "UNSUPPORTED_MEDIA_TYPE"]),
    (-32601, "Method not found", &["METHOD_NOT_FOUND"]),
    (-32602, "Invalid parameters", &["INVALID_PARAMS"]),
    (-32001, "Task not found", &["TASK_NOT_FOUND"]),
    (-32002, "Task cannot be canceled", &["TASK_NOT_CANCELABLE"]),
    (-32003, "Push Notification is not supported", &["PUSH_NOTIFICATION_NOT_SUPPORTED"]),
    (-32004, "This operation is not supported", &["UNSUPPORTED_OPERATION"]),
    (-32009, "", &["VERSION_NOT_SUPPORTED"]),
    (-32011, "Agent is not enabled", &[]),
    (-32000, "", &["AGENT_DISABLED"]),
];

/// What is wrong with the response, if anything.
pub(crate) fn fault(
    case: &Case,
    valid_outcome: ValidOutcome,
    shape: Dialect,
    received: &Received<'_>,
) -> Option<String> {
    let verdict = match (&case.expected, valid_outcome) {
        (Expected::Refused(refusal), _) => refused(refusal, received),
        (Expected::Accepted(why), ValidOutcome::Refused(code)) => {
            let refusal = Refusal { status: 200, code, shape, field: None, id: ExpectedId::Either };
            refused(&refusal, received).map_err(|fault| format!("{fault}, although {why}"))
        }
        (Expected::Accepted(why), valid_outcome) => {
            accepted(valid_outcome, received).map_err(|fault| format!("{fault}, although {why}"))
        }
    };
    verdict.err().map(|fault| format!("{fault}; got {}", received.shown()))
}

fn accepted(valid_outcome: ValidOutcome, received: &Received<'_>) -> Result<(), String> {
    let wanted = if valid_outcome == ValidOutcome::Events { "text/event-stream" } else { "application/json" };
    if received.status != 200 || !received.content_type.starts_with(wanted) {
        return Err(format!("expected 200 {wanted}"));
    }
    let found = |text: &[u8]| received.body.windows(text.len()).any(|window| window == text);
    if found(b"\"result\":") && !found(b"\"error\":{\"code\":") {
        Ok(())
    } else {
        Err("expected a result".to_owned())
    }
}

/// Checks every part of an error response.
pub(crate) fn refused(wanted: &Refusal, received: &Received<'_>) -> Result<(), String> {
    if received.status != wanted.status {
        return Err(format!("expected HTTP {}", wanted.status));
    }
    if received.content_type != "application/json" {
        return Err("expected application/json".to_owned());
    }
    let response = read(received)?;
    let members: Vec<&str> =
        response.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    if !same_set(&members, &["jsonrpc", "id", "error"]) || response["jsonrpc"] != "2.0" {
        return Err("expected jsonrpc, id and error".to_owned());
    }
    if !id_matches(wanted.id, &response["id"]) {
        return Err("the id differs".to_owned());
    }
    let error = &response["error"];
    if error["code"] != wanted.code {
        return Err(format!(
            "expected {}{}",
            wanted.code,
            wanted.field.as_ref().map_or(String::new(), |f| format!(" at {f}"))
        ));
    }
    match wanted.shape {
        Dialect::V1 => {
            let reasons = CODES.iter().find(|row| row.0 == wanted.code).map_or(&[][..], |row| row.2);
            as_v1(reasons, wanted.field.as_deref(), &error["message"], &error["data"])
        }
        Dialect::V03 => as_v03(wanted.code, wanted.field.as_deref(), error),
        Dialect::Draft => as_draft(wanted, error),
    }
}

/// Parses an error response; it must be short and must not reveal internals.
pub(crate) fn read(received: &Received<'_>) -> Result<Value, String> {
    if received.body.len() > LONGEST_BYTES {
        return Err(format!("{} bytes are too long for an error", received.body.len()));
    }
    let text = std::str::from_utf8(received.body).map_err(|_| "the response is not UTF-8".to_owned())?;
    if let Some(inside) = INTERNALS.iter().find(|inside| text.contains(**inside)) {
        return Err(format!("the response reveals {inside:?}"));
    }
    serde_json::from_str(text).map_err(|_| "the response is not JSON".to_owned())
}

/// Whether the named field is the expected one. A skill may be named by either of its two locations.
fn names(named: &str, field: &str) -> bool {
    const SKILL: [&str; 2] = ["skill", "configuration.skillId"];
    named == field || SKILL.contains(&named) && SKILL.contains(&field)
}

/// The format of 1.0: typed details, ErrorInfo first, then the faulty fields.
pub(crate) fn as_v1(
    reasons: &[&str],
    field: Option<&str>,
    message: &Value,
    details: &Value,
) -> Result<(), String> {
    let info = &details[0];
    let known = info["reason"].as_str().is_some_and(|reason| reasons.contains(&reason));
    let strings = info["metadata"].as_object().is_some_and(|facts| facts.values().all(Value::is_string));
    if info["@type"] != "type.googleapis.com/google.rpc.ErrorInfo" || info["domain"] != "a2a-protocol.org" {
        return Err("expected ErrorInfo first".to_owned());
    }
    if !known || !strings {
        return Err(format!("expected one of {reasons:?} and metadata with string values"));
    }
    let message = sentence(message)?;
    let Some(field) = field else { return Ok(()) };
    let bad = &details[1];
    if bad["@type"] != "type.googleapis.com/google.rpc.BadRequest" {
        return Err("expected BadRequest second".to_owned());
    }
    let violation = &bad["fieldViolations"][0];
    sentence(&violation["description"])?;
    let named = violation["field"].as_str().unwrap_or("no field");
    if !names(named, field) || !message.contains(named) {
        return Err(format!("expected {field:?} to be named"));
    }
    Ok(())
}

/// The format of 0.3: fixed messages; details only for errors in the request.
pub(crate) fn as_v03(code: i64, field: Option<&str>, error: &Value) -> Result<(), String> {
    fixed_text(code, error)?;
    match code {
        INVALID_PARAMS | INVALID_REQUEST => details(field, &error["data"]),
        // For an unknown method the details name it and the most similar one.
        METHOD_NOT_FOUND if error.get("data").is_some() => details(Some("method"), &error["data"]),
        _ if error.get("data").is_some() => Err("expected no data".to_owned()),
        _ => Ok(()),
    }
}

/// The format of the draft: fixed messages; `data` is always present.
fn as_draft(wanted: &Refusal, error: &Value) -> Result<(), String> {
    fixed_text(wanted.code, error)?;
    match (wanted.code, error.get("data")) {
        (_, None) => Err("expected data".to_owned()),
        (PARSE | INVALID_PARAMS | INVALID_REQUEST, Some(data)) => details(wanted.field.as_deref(), data),
        (_, Some(data)) if data.is_null() => Ok(()),
        _ => Err("expected data to be null".to_owned()),
    }
}

fn fixed_text(code: i64, error: &Value) -> Result<(), String> {
    let text = CODES.iter().find(|row| row.0 == code).map_or("", |row| row.1);
    if error["message"] == text { Ok(()) } else { Err(format!("expected the text {text:?}")) }
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
fn sentence(text: &Value) -> Result<&str, String> {
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

fn same_set(one: &[&str], other: &[&str]) -> bool {
    one.len() == other.len() && other.iter().all(|name| one.contains(name))
}

impl Received<'_> {
    pub(crate) fn shown(&self) -> String {
        const SHOWN: usize = 300;
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(SHOWN)]);
        format!("{} {} {}", self.status, self.content_type, body.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(body: &str) -> Received<'_> {
        Received { status: 200, content_type: "application/json", body: body.as_bytes() }
    }

    fn wanted(shape: Dialect) -> Refusal {
        Refusal {
            status: 200,
            code: INVALID_PARAMS,
            shape,
            field: Some("id".to_owned()),
            id: ExpectedId::Own,
        }
    }

    #[test]
    fn valid_error_passes_and_each_fault_is_found() {
        let draft = r#"{"jsonrpc":"2.0","id":"case-7","error":{"code":-32602,"message":"Invalid parameters","data":{"errors":[{"field":"id","message":"expected a string"}]}}}"#;
        assert_eq!(refused(&wanted(Dialect::Draft), &received(draft)), Ok(()));
        for (from, to) in [
            ("case-7", "case-8"),
            ("-32602", "-32603"),
            ("Invalid parameters", "Wrong"),
            (r#""field":"id""#, r#""field":"x""#),
            ("expected a string", ""),
            ("expected a string", "at src/main.rs:7"),
            (r#","data":{"errors":[{"field":"id","message":"expected a string"}]}"#, ""),
        ] {
            let spoiled = draft.replace(from, to);
            assert!(refused(&wanted(Dialect::Draft), &received(&spoiled)).is_err(), "{spoiled}");
        }
        let v1 = r#"{"jsonrpc":"2.0","id":"case-7","error":{"code":-32602,"message":"id: expected a string","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org","metadata":{}},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"id","description":"expected a string"}]}]}}"#;
        assert_eq!(refused(&wanted(Dialect::V1), &received(v1)), Ok(()));
        assert!(refused(&wanted(Dialect::V1), &received(&v1.replace("BadRequest", "Bad"))).is_err());
    }
}
