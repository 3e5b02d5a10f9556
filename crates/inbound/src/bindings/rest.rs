//! The HTTP+JSON (REST) binding: method and path name the operation, the status its result.
//!
//! Paths are parsed by hand, because ids may contain slashes and colons and a verb follows them. Every request below
//! such a path gets a response in this binding's form, including unknown paths, wrong methods and bodies that cannot be
//! decoded.

mod path;

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::Reservation;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};
use hyper::body::Body as _;
use protocol::{
    Dialect, Error, ErrorKind, ErrorTable, Operation, OperationKind, Violation,
    dialect::v1,
    rest::{self, Address, ResourcePath},
};

pub(crate) use path::{ResolvedPath, is_reserved, resolve_path};

use crate::{
    access_log::CallEntry,
    admit::{self, extensions},
    auth, body,
    negotiate::{Negotiation, NegotiationError},
    perform::perform,
    respond::{self, Envelope, ResponseFormat},
    server_state::{Endpoint, ServerState},
    version::Version,
};

/// The served paths, for the error text of an unknown path.
const PATHS: &str = "/message:send, /message:stream, /tasks, /tasks/{id}, /tasks/{id}:cancel, \
                     /tasks/{id}:subscribe, /tasks/{id}/pushNotificationConfigs, \
                     /tasks/{id}/pushNotificationConfigs/{id} and /extendedAgentCard";

/// Whether this is the path to send messages, which is the most frequent one and therefore checked first.
pub(crate) fn is_send(path: &str) -> bool {
    path.ends_with("/message:send")
}

/// Handles one request to one agent.
pub(crate) async fn handle(
    server_state: &ServerState,
    endpoint: Endpoint<'_>,
    place: &ResourcePath<'_>,
    head: &Parts,
    incoming: Body,
) -> Response {
    let version = Version::of(&head.headers, &head.uri);
    let negotiation = Negotiation {
        version: &version,
        profile: endpoint.profile(),
        accepted_versions: server_state.accepted_versions,
    };
    let envelope = envelope(place.dialect, server_state.errors, &head.headers);
    let mut format = ResponseFormat { envelope, dialect: place.dialect, profile: endpoint.profile() };
    let Some(kind) = place.operation(head.method.as_str()) else {
        return path_or_method_not_found(server_state, &format, place, &head.method);
    };
    let request_id = fastrand::u64(..);
    let mut log_entry = CallEntry::begin(&endpoint, request_id);
    log_entry.set_method(v1::operation::method(kind));
    let memory = server_state.engine.memory().begin();
    let answered = async {
        negotiation.check_path(place.dialect).map_err(|refused| {
            let NegotiationError { dialect: dialect_of_error, error } = refused;
            format.dialect = dialect_of_error;
            error
        })?;
        let body = read(server_state, place.dialect, kind, head, incoming, &memory).await?;
        endpoint.check_access()?;
        admit::check_operation(&endpoint, kind)?;
        let operation = decode(kind, place, head.uri.query(), &body)?;
        auth::check_tenant(operation.tenant())?;
        let operation = admit::check_request(&endpoint, place.dialect, &head.headers, operation)?;
        log_entry.set_operation(&operation, place.dialect);
        // Free the body before a call that may run for long.
        drop(body);
        perform(server_state, &endpoint, place.dialect, head, operation, request_id, &memory).await
    };
    let answered = answered.await;
    log_entry.set_result(&answered);
    let dialect = format.dialect;
    match answered {
        Ok(answer) => {
            let response = respond::respond(&format, answer, log_entry, request_id, server_state, memory);
            extensions::set_activated_header(
                response,
                &endpoint.settings().extensions,
                dialect,
                &head.headers,
            )
        }
        Err(error) => {
            log_entry.finish(dialect);
            respond::error_response(&format, &error, server_state.engine.clock().now())
        }
    }
}

/// The error for a path or a method that names no operation: 404 or 405.
fn path_or_method_not_found(
    server_state: &ServerState,
    format: &ResponseFormat<'_>,
    place: &ResourcePath<'_>,
    verb: &Method,
) -> Response {
    let now = server_state.engine.clock().now();
    if place.resource.is_none() {
        let text = format!("nothing is served at this path; the paths are {PATHS}");
        return respond::error_response(format, &Error::new(ErrorKind::MethodNotFound, text), now);
    }
    let allowed = place.allowed();
    let verb: String = verb.as_str().chars().take(32).collect();
    let text = format!("method {verb} is not allowed at this path; use {allowed}");
    let error = Error::new(ErrorKind::MethodNotFound, text);
    let mut response =
        respond::error_response_with_status(format, &error, StatusCode::METHOD_NOT_ALLOWED.as_u16(), now);
    if let Ok(allowed) = HeaderValue::try_from(allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// Reads the body; empty for operations that are fully described by their path.
async fn read(
    server_state: &ServerState,
    dialect: Dialect,
    kind: OperationKind,
    head: &Parts,
    incoming: Body,
    memory: &Reservation,
) -> Result<Bytes, Error> {
    let optional = matches!(kind, OperationKind::CancelTask | OperationKind::SubscribeToTask);
    if head.method != Method::POST || optional && incoming.is_end_stream() {
        return Ok(Bytes::new());
    }
    body::check_media_type(&head.headers, dialect, server_state.errors)?;
    body::check_encoding(&head.headers)?;
    let bytes = body::read(incoming, server_state.max_body_bytes, memory).await?;
    if bytes.is_empty() && !optional {
        return Err(Error::invalid_request(Violation::new("", "the body is empty, expected an object")));
    }
    Ok(bytes)
}

fn decode(
    kind: OperationKind,
    place: &ResourcePath<'_>,
    query: Option<&str>,
    body: &[u8],
) -> Result<Operation, Error> {
    let address = Address::read(place, query)?;
    place.dialect.decode_request(kind, &address, rest::document(body)?)
}

/// The response envelope of a request that names this binding's own media type, whatever its path.
pub(crate) fn requested_envelope(
    dialect: Dialect,
    errors: ErrorTable,
    headers: &HeaderMap,
) -> Option<Envelope> {
    let media_type = dialect.media_type();
    let is_named = [header::ACCEPT, header::CONTENT_TYPE]
        .iter()
        .any(|name| header_names_type(headers, name, media_type));
    (is_named && media_type != respond::JSON).then_some(Envelope::Http { media_type, errors })
}

/// The envelope of responses at a path of this binding.
pub(crate) fn envelope(dialect: Dialect, errors: ErrorTable, headers: &HeaderMap) -> Envelope {
    Envelope::Http { media_type: media_type(dialect, errors, headers), errors }
}

/// The media type of a response. In 1.0.1 it is the binding's own, unless the client names plain JSON or gives the
/// binding's own type quality 0; in 1.0.0 it is plain JSON, unless the client accepts the binding's own type.
fn media_type(dialect: Dialect, errors: ErrorTable, headers: &HeaderMap) -> &'static str {
    let own = dialect.media_type();
    if own == respond::JSON || header_names_type(headers, &header::ACCEPT, own) {
        return own;
    }
    let plain_by_default = match errors {
        ErrorTable::V1_0_0 => true,
        ErrorTable::V1_0_1 => false,
    };
    let plain = plain_by_default
        || quality(headers, &header::ACCEPT, own).is_some()
        || header_names_type(headers, &header::ACCEPT, respond::JSON)
        || header_names_type(headers, &header::CONTENT_TYPE, respond::JSON);
    if plain { respond::JSON } else { own }
}

/// Whether a header names a media type with a quality above 0.
fn header_names_type(headers: &HeaderMap, name: &header::HeaderName, media_type: &str) -> bool {
    quality(headers, name, media_type).is_some_and(|quality| quality > 0.0)
}

/// The quality value (`q`) that a header gives a media type; `None` if it does not name the type.
fn quality(headers: &HeaderMap, name: &header::HeaderName, media_type: &str) -> Option<f32> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).find_map(|media_range| {
        let mut pieces = media_range.split(';').map(str::trim);
        pieces.next().filter(|piece| piece.eq_ignore_ascii_case(media_type))?;
        let quality = pieces.find_map(|piece| piece.strip_prefix("q=").or_else(|| piece.strip_prefix("Q=")));
        Some(quality.and_then(|quality| quality.parse().ok()).unwrap_or(1.0))
    })
}
