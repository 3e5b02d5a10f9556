//! Responses over JSON-RPC and HTTP+JSON: the one place where an error becomes a response of these bindings.

use std::{borrow::Cow, sync::Arc};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{AuthForm, Profile, Reservation, ResponseNote};
use http::{HeaderName, HeaderValue, StatusCode, header};
use protocol::{
    Dialect, Error, ErrorKind, ErrorTable, Reply, Timestamp,
    json::write::Writer,
    jsonrpc::{self, Id},
};

use crate::{
    request::{access_log::CallEntry, trace::RequestId},
    response::reply_form,
};

/// Key of the error detail that holds the `WWW-Authenticate` challenge.
pub(crate) const CHALLENGE: &str = "challenge";

/// How a response is encoded.
pub(crate) struct ResponseFormat<'a> {
    pub(crate) envelope: Envelope,
    pub(crate) dialect: Dialect,
    pub(crate) profile: &'a Profile,
}

/// What encloses every response and every event of a stream.
#[derive(Clone, Debug)]
pub(crate) enum Envelope {
    /// The JSON-RPC response object, with the request's id.
    Rpc(Id),
    /// None: the HTTP status is the result.
    Http {
        media_type: &'static str,
        /// The edition of the status table.
        errors: ErrorTable,
    },
}

impl Envelope {
    /// The HTTP status of an error.
    pub(crate) fn status(&self, error: &Error) -> u16 {
        let row = error.kind.row();
        match self {
            Self::Rpc(_) => row.rpc_http,
            Self::Http { errors, .. } => row.http_of(*errors),
        }
    }

    /// Encodes an error as the body of a response with this status.
    pub(crate) fn error(&self, dialect: Dialect, error: &Error, status: u16, now: Timestamp) -> Vec<u8> {
        match self {
            Self::Rpc(id) => jsonrpc::encode_error(id, |writer| dialect.encode_error(writer, error, now)),
            Self::Http { errors, .. } => {
                let mut writer = Writer::new();
                dialect.encode_error_body(&mut writer, error, status, *errors, now);
                writer.finish()
            }
        }
    }

    pub(crate) fn media_type(&self) -> &'static str {
        match self {
            Self::Rpc(_) => JSON,
            Self::Http { media_type, .. } => media_type,
        }
    }
}

impl ResponseFormat<'_> {
    fn reply(&self, reply: &Reply, memory: Arc<Reservation>) -> Response {
        let Self { dialect, profile, envelope } = self;
        let body = match envelope {
            Envelope::Rpc(id) => {
                jsonrpc::encode_result(id, |writer| dialect.encode_reply(writer, reply, profile.style))
            }
            Envelope::Http { .. } => {
                let mut writer = Writer::new();
                dialect.encode_response(&mut writer, reply, profile.style);
                writer.finish()
            }
        };
        let mut response = self.set_dialect_header(bytes_of(envelope.media_type(), memory.hold(body)));
        if let Reply::Card(_) = reply {
            // The only card sent as a reply is the extended one, which may be specific to the caller.
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private"));
        }
        response
    }

    /// Adds the header that names the response's dialect and profile.
    pub(crate) fn set_dialect_header(&self, mut response: Response) -> Response {
        set_dialect_header(&mut response, self.dialect, self.profile);
        response
    }
}

/// Adds the header that names a response's dialect and profile.
pub(crate) fn set_dialect_header(response: &mut Response, dialect: Dialect, profile: &Profile) {
    const NAME: HeaderName = HeaderName::from_static("a2ad-dialect");
    let value = [dialect.label(), ";profile=", profile.name].concat();
    if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(value)) {
        response.headers_mut().insert(NAME, value);
    }
}

/// The caller's view of an engine error; the log gets the cause.
pub(crate) fn to_caller_error(error: engine::Error, request_id: RequestId) -> Error {
    match error {
        engine::Error::Refused(error) => {
            tracing::debug!(kind = error.kind.row().reason, reason = error.message, "request rejected");
            error
        }
        engine::Error::RetryLater(error) => {
            tracing::warn!(%request_id, trace_id = %request_id.trace(), reason = error.message, "request rejected for now");
            error
        }
        engine::Error::Unavailable(reason) => {
            tracing::warn!(
                request_id = %request_id,
                trace_id = %request_id.trace(),
                reason,
                "request failed: service unavailable"
            );
            Error::new(ErrorKind::Unavailable, "not available right now; try again in a second")
        }
        engine::Error::Broken(reason) => {
            let trace = request_id.trace();
            tracing::error!(%request_id, trace_id = %trace, reason, "request failed: internal error");
            let text = format!("internal error; see the server log for request {request_id}");
            Error::new(ErrorKind::Internal, text)
                .with("requestId", request_id.to_string())
                .with("traceId", trace.to_string())
        }
    }
}

/// Encodes a reply in the form of the profile.
pub(crate) fn reply(
    format: &ResponseFormat<'_>,
    reply: Reply,
    mut log_entry: CallEntry,
    now: Timestamp,
    memory: Arc<Reservation>,
) -> Response {
    let response = match reply_form::apply(format.profile, format.dialect, reply) {
        Ok(reply) => format.reply(&reply, memory),
        Err(error) => {
            log_entry.set_error(&error);
            error_response(format, &error, now)
        }
    };
    log_entry.finish(format.dialect);
    response
}

pub(crate) fn error_response(format: &ResponseFormat<'_>, error: &Error, now: Timestamp) -> Response {
    error_response_with_status(format, error, format.envelope.status(error), now)
}

/// An error response with this status instead of that of the table.
pub(crate) fn error_response_with_status(
    format: &ResponseFormat<'_>,
    error: &Error,
    status: u16,
    now: Timestamp,
) -> Response {
    let (error, status) = apply_auth_form(format.profile.auth, error, status);
    let status = match (&format.envelope, error.kind) {
        (Envelope::Rpc(_), ErrorKind::RateLimited) => format.profile.rate_limited_status,
        _ => status,
    };
    let body = format.envelope.error(format.dialect, &error, status, now);
    let mut response = format.set_dialect_header(bytes_of(format.envelope.media_type(), body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    set_retry_and_auth_headers(&mut response, &error);
    response
}

/// Adds `Retry-After` and `WWW-Authenticate` where the error calls for them.
pub(crate) fn set_retry_and_auth_headers(response: &mut Response, error: &Error) {
    let unauthenticated = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    if matches!(error.kind, ErrorKind::Unavailable | ErrorKind::RateLimited) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(error.retry_after().unwrap_or(1)));
    }
    if unauthenticated {
        let fact = error.facts.iter().find(|fact| fact.0 == CHALLENGE);
        let challenge = fact.and_then(|fact| HeaderValue::from_str(&fact.1).ok());
        headers.insert(header::WWW_AUTHENTICATE, challenge.unwrap_or(HeaderValue::from_static("Bearer")));
    }
}

/// Changes authentication and authorization errors to the form of the profile.
pub(crate) fn apply_auth_form(form: AuthForm, error: &Error, status: u16) -> (Cow<'_, Error>, u16) {
    let is_auth = matches!(error.kind, ErrorKind::Unauthenticated | ErrorKind::PermissionDenied);
    match form {
        AuthForm::Forbidden if is_auth => (Cow::Borrowed(error), 403),
        AuthForm::LegacyCode if is_auth => {
            (Cow::Owned(Error { legacy_code: Some(-32_001), ..error.clone() }), status)
        }
        _ => (Cow::Borrowed(error), status),
    }
}

/// Adds the header that reports what the body has no place for.
pub(crate) fn with_note(note: &ResponseNote, mut response: Response) -> Response {
    let (name, value) = match note {
        ResponseNote::Replayed => ("a2ad-replayed", Ok(HeaderValue::from_static("true"))),
        ResponseNote::WebhookSecret(secret) => {
            ("a2ad-webhook-secret", HeaderValue::from_str(secret.expose()).map(sensitive))
        }
        ResponseNote::PushHealth(health) => ("a2ad-push-health", HeaderValue::from_str(health)),
        ResponseNote::Unreadable(count) => ("a2ad-unreadable", Ok(HeaderValue::from(*count))),
    };
    if let Ok(value) = value {
        response.headers_mut().insert(name, value);
    }
    response
}

fn sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

pub(crate) const JSON: &str = "application/json";

pub(crate) fn json(body: impl Into<Bytes>) -> Response {
    bytes_of(JSON, body.into())
}

fn bytes_of(media_type: &'static str, body: Bytes) -> Response {
    response_of(media_type, Body::from(body))
}

/// A response with status 200.
pub(crate) fn response_of(media_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
