//! The only place where an error becomes an answer.

use std::borrow::Cow;

use axum::{body::Body, response::Response};
use http::{HeaderValue, StatusCode, header};
use protocol::{
    Dialect, Error, ErrorKind, Timestamp,
    jsonrpc::{self, Id},
};

use crate::profile::{AuthForm, Profile};

/// The fact of an error that says which credential is wanted.
pub(crate) const CHALLENGE: &str = "challenge";

/// Who reads an answer: the request's id, its dialect and the style of the door.
pub(crate) struct Reader<'a> {
    pub(crate) id: Id,
    pub(crate) dialect: Dialect,
    pub(crate) profile: &'a Profile,
}

impl Reader<'_> {
    /// Says on an answer which dialect and style it is in.
    pub(crate) fn label(&self, mut response: Response) -> Response {
        let label = format!("{};profile={}", self.dialect.name(), self.profile.name);
        if let Ok(label) = HeaderValue::try_from(label) {
            response.headers_mut().insert("a2ad-dialect", label);
        }
        response
    }
}

/// What the caller is told of an engine's error; the log is told the rest.
pub(crate) fn explain(error: engine::Error, request_id: u64) -> Error {
    match error {
        engine::Error::Refused(error) => {
            tracing::debug!(kind = ?error.kind, reason = error.message, "refused");
            error
        }
        engine::Error::Unavailable(reason) => {
            tracing::warn!(request_id = format!("{request_id:016x}"), reason, "unavailable");
            Error::new(ErrorKind::Unavailable, "not available right now; try again in a second")
        }
        engine::Error::Broken(reason) => {
            let request_id = format!("{request_id:016x}");
            tracing::error!(request_id, reason, "broken");
            let text = format!("internal error; the log has it under request {request_id}");
            Error::new(ErrorKind::Internal, text).with("requestId", request_id)
        }
    }
}

/// An error as a JSON-RPC answer.
pub(crate) fn refuse(reader: &Reader<'_>, error: &Error, now: Timestamp) -> Response {
    let (error, status) = as_house_tells(reader.profile.auth, error);
    let body = jsonrpc::encode_error(&reader.id, |writer| reader.dialect.encode_error(writer, &error, now));
    let mut response = reader.label(json(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    advise(&mut response, &error);
    response
}

/// Says in headers what HTTP has headers for: when to come back, and which credential to bring.
pub(crate) fn advise(response: &mut Response, error: &Error) {
    let unauthenticated = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    if matches!(error.kind, ErrorKind::Unavailable | ErrorKind::RateLimited) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if unauthenticated {
        let fact = error.facts.iter().find(|fact| fact.0 == CHALLENGE);
        let challenge = fact.and_then(|fact| HeaderValue::from_str(&fact.1).ok());
        let challenge = challenge.filter(|challenge| !challenge.is_empty());
        headers.insert(header::WWW_AUTHENTICATE, challenge.unwrap_or(HeaderValue::from_static("Bearer")));
    }
}

/// The error and its HTTP status as the house tells callers that it does not let in.
fn as_house_tells(form: AuthForm, error: &Error) -> (Cow<'_, Error>, u16) {
    let status = error.kind.row().rpc_http;
    let is_auth = matches!(error.kind, ErrorKind::Unauthenticated | ErrorKind::PermissionDenied);
    match form {
        AuthForm::Forbidden if is_auth => (Cow::Borrowed(error), 403),
        AuthForm::OldCode if is_auth => {
            (Cow::Owned(Error { legacy_code: Some(-32_001), ..error.clone() }), status)
        }
        _ => (Cow::Borrowed(error), status),
    }
}

/// An answer to a message that was sent before.
pub(crate) fn replayed(mut response: Response) -> Response {
    response.headers_mut().insert("a2ad-replayed", HeaderValue::from_static("true"));
    response
}

/// Bytes that are JSON.
pub(crate) fn json(body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
