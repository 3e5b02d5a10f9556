//! Checks whether a response is what a case expects; describes the fault in one sentence otherwise.

use super::super::checker::{Received, as_v1, as_v03, read};
use super::super::methods::ValidOutcome;
use super::case::{Case, Expected, Refusal, of_code};
use super::operations::{Generation, Operation};

const JSON: &str = "application/json";
const OWN: &str = "application/a2a+json";

/// What is wrong with the response, if anything.
pub(crate) fn fault(
    operation: &Operation,
    case: &Case,
    received: &Received<'_>,
    allow: Option<&str>,
) -> Option<String> {
    let media_type = media_type(operation.generation, case);
    let verdict = match (&case.expected, operation.valid_outcome) {
        (Expected::Refused(refusal), _) => refused(refusal, media_type, received, allow),
        (Expected::Accepted(why), ValidOutcome::Refused(code)) => {
            let (error, shape) = (of_code(code), operation.generation);
            let refusal = Refusal { error, shape, field: None, allow: None };
            refused(&refusal, media_type, received, allow).map_err(|fault| format!("{fault}, although {why}"))
        }
        (Expected::Accepted(why), valid_outcome) => {
            accepted(valid_outcome, media_type, received).map_err(|fault| format!("{fault}, although {why}"))
        }
    };
    verdict.err().map(|fault| format!("{fault}; got {}", received.shown()))
}

/// The expected media type of the response: in 1.0 the protocol's own, unless the request accepts or sends plain JSON
/// (with a quality other than 0) and does not accept the protocol's own.
fn media_type(generation: Generation, case: &Case) -> &'static str {
    let wanted = |range: &str| !range.split(';').skip(1).any(|parameter| parameter.trim() == "q=0");
    let is = |header: Option<&str>, name: &str| {
        let header = header.map(str::to_ascii_lowercase).unwrap_or_default();
        header.split(',').any(|range| essence(range) == name && wanted(range))
    };
    let typed = case.content_type.filter(|_| !case.body.is_empty());
    let plain = (is(case.accept, JSON) || is(typed, JSON)) && !is(case.accept, OWN);
    if generation == Generation::V03 || plain { JSON } else { OWN }
}

fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

fn accepted(valid_outcome: ValidOutcome, media_type: &str, received: &Received<'_>) -> Result<(), String> {
    let wanted = if valid_outcome == ValidOutcome::Events { "text/event-stream" } else { media_type };
    if received.status != 200 || received.content_type != wanted {
        return Err(format!("expected 200 {wanted}"));
    }
    let found = |text: &[u8]| received.body.windows(text.len()).any(|window| window == text);
    let body = if valid_outcome == ValidOutcome::Events {
        found(b"data: {\"")
    } else {
        received.body.starts_with(b"{\"")
    };
    if body && !found(b"{\"error\":{\"code\":") && !found(b"{\"code\":") {
        Ok(())
    } else {
        Err("expected a result".to_owned())
    }
}

/// Checks every part of an error response.
fn refused(
    wanted: &Refusal,
    media_type: &str,
    received: &Received<'_>,
    allow: Option<&str>,
) -> Result<(), String> {
    let (error, field) = (wanted.error, wanted.field.as_deref());
    let at = field.map_or(String::new(), |field| format!(" at {field:?}"));
    let wrong = || format!("expected {} {}{at}", error.http, error.reason);
    if received.status != error.http {
        return Err(wrong());
    }
    if received.content_type != media_type {
        return Err(format!("expected {media_type}"));
    }
    if allow != wanted.allow {
        return Err(format!("expected the Allow header {:?}, not {allow:?}", wanted.allow));
    }
    let response = read(received)?;
    match wanted.shape {
        Generation::V03 if response["code"] != error.code => Err(wrong()),
        Generation::V03 if response.as_object().is_none_or(|response| response.len() > 3) => {
            Err("expected code, message and data".to_owned())
        }
        Generation::V03 => as_v03(error.code, field, &response),
        Generation::V1 => {
            let inside = &response["error"];
            let alone = response.as_object().is_some_and(|response| response.len() == 1);
            if !alone || inside["code"] != error.http || inside["status"] != error.status {
                return Err(wrong());
            }
            as_v1(&[error.reason], field, &inside["message"], &inside["details"])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::INVALID_PARAMS;
    use super::*;

    fn checked(shape: Generation, status: u16, media_type: &str, body: &str) -> Result<(), String> {
        let wanted = Refusal { error: &INVALID_PARAMS, shape, field: Some("id".to_owned()), allow: None };
        let received = Received { status, content_type: media_type, body: body.as_bytes() };
        refused(&wanted, OWN, &received, None)
    }

    #[test]
    fn valid_error_passes_and_each_fault_is_found() {
        let v1 = r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"id: expected a string","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org","metadata":{}},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"id","description":"expected a string"}]}]}}"#;
        let v03 = r#"{"code":-32602,"message":"Invalid parameters","data":{"errors":[{"field":"id","message":"expected a string"}]}}"#;
        let edits = [
            (Generation::V1, v1, r#""code":400"#, r#""code":-32602"#),
            (Generation::V1, v1, "INVALID_ARGUMENT", "UNKNOWN"),
            (Generation::V1, v1, "INVALID_PARAMS", "INVALID_REQUEST"),
            (Generation::V1, v1, r#""field":"id""#, r#""field":"x""#),
            (Generation::V1, v1, "id: expected a string", "bad"),
            (Generation::V1, v1, "id: expected a string", "id: at src/main.rs:7"),
            (Generation::V1, v1, r#"{"error""#, r#"{"jsonrpc":"2.0","error""#),
            (Generation::V03, v03, "-32602", "-32603"),
            (Generation::V03, v03, "Invalid parameters", "Wrong"),
            (Generation::V03, v03, r#""field":"id""#, r#""field":"x""#),
            (Generation::V03, v03, "expected a string", ""),
        ];
        for (shape, right, from, to) in edits {
            assert_eq!(checked(shape, 400, OWN, right), Ok(()), "{right}");
            assert!(checked(shape, 400, OWN, &right.replace(from, to)).is_err(), "{from} {to}");
            assert!(checked(shape, 500, OWN, right).is_err());
            assert!(checked(shape, 400, "text/plain", right).is_err());
        }
    }
}
