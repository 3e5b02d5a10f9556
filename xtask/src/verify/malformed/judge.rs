//! Whether an answer is what a case expects, in one sentence when it is not.

use serde_json::Value;

use super::case::{
    Case, Echo, Expected, ID, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE, Refusal,
};
use super::methods::{Dialect, Sound};

/// An answer as it came.
pub(crate) struct Told<'a> {
    pub(crate) status: u16,
    pub(crate) content_type: &'a str,
    pub(crate) body: &'a [u8],
}

/// What a caller never needs to know: the program's own words for its insides.
pub(crate) const INSIDES: &[&str] =
    &["panicked", "backtrace", ".rs:", "/crates/", "/home/", "rusqlite", "serde", "store.db", "thread '"];
/// Longer than any sentence about a request, shorter than what a caller may make the server repeat.
const LONGEST_BYTES: usize = 4 * 1024;

/// Each code with the fixed text of the older generations and the reason of 1.0.
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

/// What is wrong with the answer, if anything is.
pub(crate) fn fault(case: &Case, sound: Sound, shape: Dialect, told: &Told<'_>) -> Option<String> {
    let verdict = match (&case.expected, sound) {
        (Expected::Refused(refusal), _) => refused(refusal, told),
        (Expected::Taken(why), Sound::Refused(code)) => {
            let refusal = Refusal { status: 200, code, shape, field: None, id: Echo::Either };
            refused(&refusal, told).map_err(|fault| format!("{fault}, though {why}"))
        }
        (Expected::Taken(why), sound) => taken(sound, told).map_err(|fault| format!("{fault}, though {why}")),
    };
    verdict.err().map(|fault| format!("{fault}; answered {}", told.shown()))
}

fn taken(sound: Sound, told: &Told<'_>) -> Result<(), String> {
    let wanted = if sound == Sound::Events { "text/event-stream" } else { "application/json" };
    if told.status != 200 || !told.content_type.starts_with(wanted) {
        return Err(format!("wanted 200 {wanted}"));
    }
    let found = |text: &[u8]| told.body.windows(text.len()).any(|window| window == text);
    if found(b"\"result\":") && !found(b"\"error\":{\"code\":") {
        Ok(())
    } else {
        Err("wanted a result".to_owned())
    }
}

/// Checks a refusal in every respect.
pub(crate) fn refused(wanted: &Refusal, told: &Told<'_>) -> Result<(), String> {
    if told.status != wanted.status {
        return Err(format!("wanted HTTP {}", wanted.status));
    }
    if told.content_type != "application/json" {
        return Err("wanted application/json".to_owned());
    }
    let answer = read(told)?;
    let members: Vec<&str> =
        answer.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    if !same_set(&members, &["jsonrpc", "id", "error"]) || answer["jsonrpc"] != "2.0" {
        return Err("wanted jsonrpc, id and error".to_owned());
    }
    if !echoes(wanted.id, &answer["id"]) {
        return Err("the id is another".to_owned());
    }
    let error = &answer["error"];
    if error["code"] != wanted.code {
        return Err(format!(
            "wanted {}{}",
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

/// The JSON of a refusal that is short and shows nothing it should not.
pub(crate) fn read(told: &Told<'_>) -> Result<Value, String> {
    if told.body.len() > LONGEST_BYTES {
        return Err(format!("{} bytes are no sentence", told.body.len()));
    }
    let text = std::str::from_utf8(told.body).map_err(|_| "the answer is no text".to_owned())?;
    if let Some(inside) = INSIDES.iter().find(|inside| text.contains(**inside)) {
        return Err(format!("the answer shows {inside:?}"));
    }
    serde_json::from_str(text).map_err(|_| "the answer is no JSON".to_owned())
}

/// Whether a violation stands where it should. A skill is one thing wherever a request names it.
fn names(named: &str, field: &str) -> bool {
    const SKILL: [&str; 2] = ["skill", "configuration.skillId"];
    named == field || SKILL.contains(&named) && SKILL.contains(&field)
}

/// Typed details: ErrorInfo first, then the fields at fault.
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
        return Err("wanted ErrorInfo first".to_owned());
    }
    if !known || !strings {
        return Err(format!("wanted one of {reasons:?} and facts that are strings"));
    }
    let message = sentence(message)?;
    let Some(field) = field else { return Ok(()) };
    let bad = &details[1];
    if bad["@type"] != "type.googleapis.com/google.rpc.BadRequest" {
        return Err("wanted BadRequest second".to_owned());
    }
    let violation = &bad["fieldViolations"][0];
    sentence(&violation["description"])?;
    let named = violation["field"].as_str().unwrap_or("no field at all");
    if !names(named, field) || !message.contains(named) {
        return Err(format!("wanted {field:?} to be named"));
    }
    Ok(())
}

/// Fixed texts; details only where the request is at fault.
pub(crate) fn as_v03(code: i64, field: Option<&str>, error: &Value) -> Result<(), String> {
    fixed_text(code, error)?;
    match code {
        INVALID_PARAMS | INVALID_REQUEST => details(field, &error["data"]),
        // An unknown method is named there, beside the nearest one.
        METHOD_NOT_FOUND if error.get("data").is_some() => details(Some("method"), &error["data"]),
        _ if error.get("data").is_some() => Err("wanted no data".to_owned()),
        _ => Ok(()),
    }
}

/// Fixed texts; `data` is always there.
fn as_draft(wanted: &Refusal, error: &Value) -> Result<(), String> {
    fixed_text(wanted.code, error)?;
    match (wanted.code, error.get("data")) {
        (_, None) => Err("wanted data".to_owned()),
        (PARSE | INVALID_PARAMS | INVALID_REQUEST, Some(data)) => details(wanted.field.as_deref(), data),
        (_, Some(data)) if data.is_null() => Ok(()),
        _ => Err("wanted data to be null".to_owned()),
    }
}

fn fixed_text(code: i64, error: &Value) -> Result<(), String> {
    let text = CODES.iter().find(|row| row.0 == code).map_or("", |row| row.1);
    if error["message"] == text { Ok(()) } else { Err(format!("wanted the text {text:?}")) }
}

fn details(field: Option<&str>, data: &Value) -> Result<(), String> {
    let first = &data["errors"][0];
    sentence(&first["message"])?;
    match field {
        Some(field) if !first["field"].as_str().is_some_and(|named| names(named, field)) => {
            Err(format!("wanted {field:?} to be named"))
        }
        _ => Ok(()),
    }
}

/// One line with something in it and no full stop. Where a task is not found, its name is the end of the sentence,
/// whatever it is.
fn sentence(text: &Value) -> Result<&str, String> {
    let text = text.as_str().unwrap_or_default();
    let clean = !text.ends_with('.') && !text.contains(['\n', '\r']);
    if text.trim().is_empty() || !clean && !text.contains("not found") {
        return Err("wanted one sentence".to_owned());
    }
    Ok(text)
}

fn echoes(wanted: Echo, id: &Value) -> bool {
    match wanted {
        Echo::Own => *id == ID.trim_matches('"'),
        Echo::Null => id.is_null(),
        Echo::Either => true,
    }
}

fn same_set(one: &[&str], other: &[&str]) -> bool {
    one.len() == other.len() && other.iter().all(|name| one.contains(name))
}

impl Told<'_> {
    pub(crate) fn shown(&self) -> String {
        const SHOWN: usize = 300;
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(SHOWN)]);
        format!("{} {} {}", self.status, self.content_type, body.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &str) -> Told<'_> {
        Told { status: 200, content_type: "application/json", body: body.as_bytes() }
    }

    fn wanted(shape: Dialect) -> Refusal {
        Refusal { status: 200, code: INVALID_PARAMS, shape, field: Some("id".to_owned()), id: Echo::Own }
    }

    #[test]
    fn a_right_refusal_passes_and_each_fault_is_found() {
        let draft = r#"{"jsonrpc":"2.0","id":"case-7","error":{"code":-32602,"message":"Invalid parameters","data":{"errors":[{"field":"id","message":"expected a string"}]}}}"#;
        assert_eq!(refused(&wanted(Dialect::Draft), &told(draft)), Ok(()));
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
            assert!(refused(&wanted(Dialect::Draft), &told(&spoiled)).is_err(), "{spoiled}");
        }
        let v1 = r#"{"jsonrpc":"2.0","id":"case-7","error":{"code":-32602,"message":"id: expected a string","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org","metadata":{}},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"id","description":"expected a string"}]}]}}"#;
        assert_eq!(refused(&wanted(Dialect::V1), &told(v1)), Ok(()));
        assert!(refused(&wanted(Dialect::V1), &told(&v1.replace("BadRequest", "Bad"))).is_err());
    }
}
