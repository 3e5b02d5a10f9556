//! Recognises errors: in a JSON-RPC response, as the body of an HTTP+JSON error response, and as a bare error object.

use super::{Error, ModelValue, Recognition, decode_at, is_set, response};
use crate::{
    Dialect,
    json::{
        Raw,
        read::{Node, Object, Path},
    },
};

/// An error without a JSON-RPC envelope; `None` if the object is not an error.
pub(super) fn bare_error<'a>(
    object: &Object<'a, '_>,
    raw: Raw<'a>,
) -> Option<Result<Recognition<'a>, Error>> {
    if let Some(error) = object.present("error").filter(|error| error.get().starts_with('{')) {
        return Some(if is_status(error) { http_error(Dialect::V1, raw) } else { response(object) });
    }
    let has_code = object.present("code").is_some_and(|code| code.get().parse::<i64>().is_ok());
    let has_message = object.present("message").is_none_or(|message| message.get().starts_with('"'));
    let data = object.present("data").map(Raw::get);
    (has_code && has_message).then(|| match data {
        // A bare object is the error body of 0.3 over HTTP+JSON, unless `data` is a list (1.0) or null (draft).
        Some(text) if text.starts_with('[') || text == "null" => response_error("", raw),
        _ => http_error(Dialect::V03Proto, raw),
    })
}

/// The error object of a JSON-RPC response, which is at this member of the input.
pub(super) fn response_error<'a>(member: &str, raw: Raw<'a>) -> Result<Recognition<'a>, Error> {
    let (dialect, what) = (dialect_of(raw), "an error");
    let error = decode_at(member, dialect, what, raw, |node| dialect.decode_error(node))?;
    Ok(Recognition { dialect, what: what.into(), value: ModelValue::Error(error), input: raw })
}

fn http_error(dialect: Dialect, raw: Raw<'_>) -> Result<Recognition<'_>, Error> {
    let what = "an error over HTTP+JSON";
    let error = decode_at("", dialect, what, raw, |node| dialect.decode_error_body(node))?;
    Ok(Recognition { dialect, what: what.into(), value: ModelValue::HttpError(error), input: raw })
}

/// Whether an error object has the HTTP+JSON members of 1.0.
fn is_status(error: Raw<'_>) -> bool {
    let object = Node::new(error, &Path::Root).object();
    object.is_ok_and(|object| is_set(&object, "status") || is_set(&object, "details"))
}

/// The dialect of an error object: in 1.0 `data` is a list of typed details; in the draft `data` is always present.
fn dialect_of(raw: Raw<'_>) -> Dialect {
    let data = Node::new(raw, &Path::Root).object().ok().and_then(|error| error.present("data"));
    match data.map(Raw::get) {
        Some(text) if text.starts_with('[') => Dialect::V1,
        None => Dialect::V03,
        Some(_) => Dialect::Draft,
    }
}
