//! Whether an answer is what a case expects, in one sentence when it is not.

use super::super::judge::{Told, as_v1, as_v03, read};
use super::super::methods::Sound;
use super::case::{Case, Expected, Refusal, of_code};
use super::operations::{Generation, Operation};

const JSON: &str = "application/json";
const OWN: &str = "application/a2a+json";

/// What is wrong with the answer, if anything is.
pub(crate) fn fault(
    operation: &Operation,
    case: &Case,
    told: &Told<'_>,
    allow: Option<&str>,
) -> Option<String> {
    let media_type = media_type(operation.generation, case);
    let verdict = match (&case.expected, operation.sound) {
        (Expected::Refused(refusal), _) => refused(refusal, media_type, told, allow),
        (Expected::Taken(why), Sound::Refused(code)) => {
            let (error, shape) = (of_code(code), operation.generation);
            let refusal = Refusal { error, shape, field: None, allow: None };
            refused(&refusal, media_type, told, allow).map_err(|fault| format!("{fault}, though {why}"))
        }
        (Expected::Taken(why), sound) => {
            taken(sound, media_type, told).map_err(|fault| format!("{fault}, though {why}"))
        }
    };
    verdict.err().map(|fault| format!("{fault}; answered {}", told.shown()))
}

/// What the answer must be called: in 1.0 it has a name of its own, unless the client speaks of plain JSON other than
/// to say that it does not want it.
fn media_type(generation: Generation, case: &Case) -> &'static str {
    let wanted = |said: &str| !said.split(';').skip(1).any(|word| word.trim() == "q=0");
    let is = |said: Option<&str>, name: &str| {
        let said = said.map(str::to_ascii_lowercase).unwrap_or_default();
        said.split(',').any(|said| essence(said) == name && wanted(said))
    };
    let typed = case.content_type.filter(|_| !case.body.is_empty());
    let plain = (is(case.accept, JSON) || is(typed, JSON)) && !is(case.accept, OWN);
    if generation == Generation::V03 || plain { JSON } else { OWN }
}

fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

fn taken(sound: Sound, media_type: &str, told: &Told<'_>) -> Result<(), String> {
    let wanted = if sound == Sound::Events { "text/event-stream" } else { media_type };
    if told.status != 200 || told.content_type != wanted {
        return Err(format!("wanted 200 {wanted}"));
    }
    let found = |text: &[u8]| told.body.windows(text.len()).any(|window| window == text);
    let body = if sound == Sound::Events { found(b"data: {\"") } else { told.body.starts_with(b"{\"") };
    if body && !found(b"{\"error\":{\"code\":") && !found(b"{\"code\":") {
        Ok(())
    } else {
        Err("wanted a result".to_owned())
    }
}

/// Checks a refusal in every respect.
fn refused(wanted: &Refusal, media_type: &str, told: &Told<'_>, allow: Option<&str>) -> Result<(), String> {
    let (error, field) = (wanted.error, wanted.field.as_deref());
    let at = field.map_or(String::new(), |field| format!(" at {field:?}"));
    let wrong = || format!("wanted {} {}{at}", error.http, error.reason);
    if told.status != error.http {
        return Err(wrong());
    }
    if told.content_type != media_type {
        return Err(format!("wanted {media_type}"));
    }
    if allow != wanted.allow {
        return Err(format!("wanted to be allowed {:?}, not {allow:?}", wanted.allow));
    }
    let answer = read(told)?;
    match wanted.shape {
        Generation::V03 if answer["code"] != error.code => Err(wrong()),
        Generation::V03 if answer.as_object().is_none_or(|answer| answer.len() > 3) => {
            Err("wanted code, message and data".to_owned())
        }
        Generation::V03 => as_v03(error.code, field, &answer),
        Generation::V1 => {
            let inside = &answer["error"];
            let alone = answer.as_object().is_some_and(|answer| answer.len() == 1);
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

    fn judged(shape: Generation, status: u16, media_type: &str, body: &str) -> Result<(), String> {
        let wanted = Refusal { error: &INVALID_PARAMS, shape, field: Some("id".to_owned()), allow: None };
        let told = Told { status, content_type: media_type, body: body.as_bytes() };
        refused(&wanted, OWN, &told, None)
    }

    #[test]
    fn a_right_refusal_passes_and_each_fault_is_found() {
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
            assert_eq!(judged(shape, 400, OWN, right), Ok(()), "{right}");
            assert!(judged(shape, 400, OWN, &right.replace(from, to)).is_err(), "{from} {to}");
            assert!(judged(shape, 500, OWN, right).is_err());
            assert!(judged(shape, 400, "text/plain", right).is_err());
        }
    }
}
