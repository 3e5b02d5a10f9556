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
