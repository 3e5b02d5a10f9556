//! The rules for HTTP+JSON responses.

use super::super::case::{Case, Refusal};
use super::super::checker::{Received, as_v1, as_v03, read};
use super::super::errors::Dialect;

const JSON: &str = "application/json";
const OWN: &str = "application/a2a+json";

/// The expected media type of the response: in 1.0 the protocol's own, unless the request accepts or sends plain JSON
/// (with a quality other than 0) and does not accept the protocol's own.
pub(crate) fn media_type(case: &Case) -> &'static str {
    let wanted = |range: &str| !range.split(';').skip(1).any(|parameter| parameter.trim() == "q=0");
    let is = |header: Option<&[u8]>, name: &str| {
        let header = header.map(String::from_utf8_lossy).unwrap_or_default().to_ascii_lowercase();
        header.split(',').any(|range| essence(range) == name && wanted(range))
    };
    let accept = case.header("accept");
    let typed = case.header("content-type").filter(|_| !case.body.is_empty());
    let plain = (is(accept, JSON) || is(typed, JSON)) && !is(accept, OWN);
    if case.dialect == Dialect::V03 || plain { JSON } else { OWN }
}

fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Checks the header `Allow` and the body of an error response.
pub(crate) fn refused(wanted: &Refusal, received: &Received) -> Result<(), String> {
    let (error, allow) = (wanted.error, received.allow.as_deref());
    if allow != wanted.allow {
        return Err(format!("expected the Allow header {:?}, not {allow:?}", wanted.allow));
    }
    let response = read(received)?;
    if wanted.shape != Dialect::V1 {
        return match response.as_object().map_or(0, serde_json::Map::len) {
            _ if response["code"] != error.code(wanted.shape) => Err(format!("expected {}", wanted.shown())),
            1..=3 => as_v03(wanted, &response),
            _ => Err("expected code, message and data".to_owned()),
        };
    }
    let inside = &response["error"];
    let alone = response.as_object().is_some_and(|response| response.len() == 1);
    if !alone || inside["code"] != wanted.http || inside["status"] != error.status.name {
        return Err(format!("expected {} {}", wanted.http, wanted.shown()));
    }
    as_v1(wanted, &inside["message"], &inside["details"])
}

#[cfg(test)]
mod tests {
    use super::super::super::checker::fault;
    use super::super::super::errors::INVALID_PARAMS;
    use super::super::operations::OPERATIONS;
    use super::*;

    fn checked(shape: Dialect, http: u16, media_type: &str, body: &str) -> Option<String> {
        let case = OPERATIONS[0].good().refused("", INVALID_PARAMS).naming_field("id").in_dialect(shape);
        let (content_type, body) = (media_type.to_owned(), body.into());
        fault(&case, &Received { http, content_type, body, ..Received::default() })
    }

    #[test]
    fn valid_error_passes_and_each_fault_is_found() {
        let v1 = r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"id: expected a string","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org","metadata":{}},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"id","description":"expected a string"}]}]}}"#;
        let v03 = r#"{"code":-32602,"message":"Invalid parameters","data":{"errors":[{"field":"id","message":"expected a string"}]}}"#;
        let edits = [
            (Dialect::V1, v1, r#""code":400"#, r#""code":-32602"#),
            (Dialect::V1, v1, "INVALID_ARGUMENT", "UNKNOWN"),
            (Dialect::V1, v1, "INVALID_PARAMS", "INVALID_REQUEST"),
            (Dialect::V1, v1, r#""field":"id""#, r#""field":"x""#),
            (Dialect::V1, v1, "id: expected a string", "bad"),
            (Dialect::V1, v1, "id: expected a string", "id: at src/main.rs:7"),
            (Dialect::V1, v1, r#"{"error""#, r#"{"jsonrpc":"2.0","error""#),
            (Dialect::V03, v03, "-32602", "-32603"),
            (Dialect::V03, v03, "Invalid parameters", "Wrong"),
            (Dialect::V03, v03, r#""field":"id""#, r#""field":"x""#),
            (Dialect::V03, v03, "expected a string", ""),
        ];
        for (shape, right, from, to) in edits {
            assert_eq!(checked(shape, 400, OWN, right), None, "{right}");
            assert!(checked(shape, 400, OWN, &right.replace(from, to)).is_some(), "{from} {to}");
            assert!(checked(shape, 500, OWN, right).is_some());
            assert!(checked(shape, 400, "text/plain", right).is_some());
        }
    }
}
