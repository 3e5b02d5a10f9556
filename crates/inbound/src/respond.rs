//! Answers over JSON-RPC and HTTP+JSON: the one place where an error becomes one of theirs.

use std::{borrow::Cow, sync::Arc};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{Answer, Reservation};
use http::{HeaderValue, StatusCode, header};
use protocol::{
    Dialect, Error, ErrorKind, ErrorTable, Reply, Timestamp,
    json::write::Writer,
    jsonrpc::{self, Id},
};

use crate::{
    profile::{AuthForm, Profile},
    project,
    server_state::ServerState,
    sse,
    trace::Line,
};

/// The fact of an error that says which credential is wanted.
pub(crate) const CHALLENGE: &str = "challenge";

/// Who reads an answer: what it wants around it, its dialect and the style of the door.
pub(crate) struct Reader<'a> {
    pub(crate) envelope: Envelope,
    pub(crate) dialect: Dialect,
    pub(crate) profile: &'a Profile,
}

/// What is around every answer, and every event of a stream.
#[derive(Clone, Debug)]
pub(crate) enum Envelope {
    /// That of JSON-RPC, with the request's id.
    Rpc(Id),
    /// Nothing: HTTP itself says how it went.
    Http {
        /// What the answer is called.
        media_type: &'static str,
        /// The table of statuses.
        errors: ErrorTable,
    },
}

impl Envelope {
    /// The status that says this.
    pub(crate) fn status(&self, error: &Error) -> u16 {
        let row = error.kind.row();
        match self {
            Self::Rpc(_) => row.rpc_http,
            Self::Http { errors, .. } => row.http_of(*errors),
        }
    }

    /// An error, told in an answer of this status.
    pub(crate) fn error(&self, dialect: Dialect, error: &Error, status: u16, now: Timestamp) -> Vec<u8> {
        match self {
            Self::Rpc(id) => jsonrpc::encode_error(id, |writer| dialect.encode_error(writer, error, now)),
            Self::Http { errors, .. } => {
                let mut writer = Writer::new();
                dialect.encode_refusal(&mut writer, error, status, *errors, now);
                writer.finish()
            }
        }
    }

    fn media_type(&self) -> &'static str {
        match self {
            Self::Rpc(_) => JSON,
            Self::Http { media_type, .. } => media_type,
        }
    }
}

impl Reader<'_> {
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
        let mut response = self.label(bytes_of(envelope.media_type(), memory.hold(body)));
        if let Reply::Card(_) = reply {
            // Only an extended card is an answer to a call, and it may be for this caller alone.
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private"));
        }
        response
    }

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
        engine::Error::Later(error) => {
            let request_id = format!("{request_id:016x}");
            tracing::warn!(request_id, reason = error.message, "not now");
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

/// What the engine answered, as the house shows it.
pub(crate) fn answer(
    reader: &Reader<'_>,
    answered: Answer,
    mut line: Line,
    request_id: u64,
    server_state: &ServerState,
    memory: Arc<Reservation>,
) -> Response {
    match answered {
        Answer::Reply(reply) => {
            let response = match project::reply(reader.profile, reader.dialect, reply) {
                Ok(reply) => reader.reply(&reply, memory),
                Err(error) => {
                    line.refused(&error);
                    refuse(reader, &error, server_state.engine.clock().now())
                }
            };
            line.end(reader.dialect);
            response
        }
        Answer::Stream(stream) => {
            sse::respond(stream, reader, line.watch(reader.dialect), request_id, server_state, memory)
        }
        Answer::Replayed(answered) => {
            replayed(answer(reader, *answered, line, request_id, server_state, memory))
        }
    }
}

/// An error as an answer.
pub(crate) fn refuse(reader: &Reader<'_>, error: &Error, now: Timestamp) -> Response {
    refuse_with(reader, error, reader.envelope.status(error), now)
}

/// An error as an answer with this status, where the table has not the right one.
pub(crate) fn refuse_with(reader: &Reader<'_>, error: &Error, status: u16, now: Timestamp) -> Response {
    let (error, status) = as_house_tells(reader.profile.auth, error, status);
    let body = reader.envelope.error(reader.dialect, &error, status, now);
    let mut response = reader.label(bytes_of(reader.envelope.media_type(), body.into()));
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
        headers.insert(header::WWW_AUTHENTICATE, challenge.unwrap_or(HeaderValue::from_static("Bearer")));
    }
}

/// The error and its HTTP status as the house tells callers that it does not let in.
fn as_house_tells(form: AuthForm, error: &Error, status: u16) -> (Cow<'_, Error>, u16) {
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

/// What JSON is called that is nothing more particular.
pub(crate) const JSON: &str = "application/json";

/// Bytes that are JSON.
pub(crate) fn json(body: Vec<u8>) -> Response {
    bytes_of(JSON, body.into())
}

fn bytes_of(media_type: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
