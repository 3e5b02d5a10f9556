//! HTTP+JSON: the verb and the path say what is asked, the status how it went.
//!
//! Paths are taken apart by hand, because ids may hold slashes and colons and a verb stands behind them. Whatever is
//! below such a path is answered in its form: unknown paths, wrong verbs and what cannot be decoded, too.

mod find;

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::Reservation;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};
use hyper::body::Body as _;
use protocol::{
    Dialect, Error, ErrorKind, ErrorTable, Operation, OperationKind, Violation,
    dialect::v1,
    rest::{self, Address, Place},
};

pub(crate) use find::{Found, find, is_taken};

use crate::{
    admit::{self, extensions},
    auth, body,
    choose::{Asked, Refused},
    perform::perform,
    respond::{self, Envelope, Reader},
    server_state::{Endpoint, ServerState},
    trace::Line,
    version::Version,
};

/// What is at which path, for those who missed it.
const PATHS: &str = "/message:send, /message:stream, /tasks, /tasks/{id}, /tasks/{id}:cancel, \
                     /tasks/{id}:subscribe, /tasks/{id}/pushNotificationConfigs, \
                     /tasks/{id}/pushNotificationConfigs/{id} and /extendedAgentCard";

/// Whether this is where messages are sent to, which is asked more often than anything else.
pub(crate) fn is_send(path: &str) -> bool {
    path.ends_with("/message:send")
}

/// Answers one request to one agent.
pub(crate) async fn handle(
    server_state: &ServerState,
    endpoint: Endpoint<'_>,
    place: &Place<'_>,
    head: &Parts,
    incoming: Body,
) -> Response {
    let version = Version::of(&head.headers, &head.uri);
    let asked = Asked {
        version: &version,
        profile: endpoint.profile,
        accepted_versions: server_state.accepted_versions,
    };
    let media_type = media_type(place.dialect, server_state.errors, &head.headers);
    let envelope = Envelope::Http { media_type, errors: server_state.errors };
    let mut reader = Reader { envelope, dialect: place.dialect, profile: endpoint.profile };
    let Some(kind) = place.operation(head.method.as_str()) else {
        return nothing_to_do(server_state, &reader, place, &head.method);
    };
    let request_id = fastrand::u64(..);
    let mut line = Line::begin(server_state.engine.agents(), endpoint.agent, request_id);
    line.called(v1::operation::method(kind));
    let memory = server_state.engine.memory().begin();
    let answered = async {
        asked.allows(place.dialect).map_err(|refused| {
            let Refused { dialect: told_in, error } = refused;
            reader.dialect = told_in;
            error
        })?;
        let body = read(server_state, place.dialect, kind, head, incoming, &memory).await?;
        endpoint.check()?;
        admit::operation(server_state, &endpoint, kind)?;
        let operation = decode(kind, place, head.uri.query(), &body)?;
        auth::check_tenant(operation.tenant())?;
        let operation = admit::request(server_state, &endpoint, place.dialect, &head.headers, operation)?;
        line.about(&operation, place.dialect);
        // A call may take its time; the body is read.
        drop(body);
        perform(server_state, &endpoint, place.dialect, head, operation, request_id, &memory).await
    };
    let answered = answered.await;
    line.answered(&answered);
    let dialect = reader.dialect;
    match answered {
        Ok(answer) => {
            let response = respond::answer(&reader, answer, line, request_id, server_state, memory);
            extensions::tell(response, &endpoint.settings.extensions, dialect, &head.headers)
        }
        Err(error) => {
            line.end(dialect);
            respond::refuse(&reader, &error, server_state.engine.clock().now())
        }
    }
}

/// Refuses what is below a path of this binding and does nothing there.
fn nothing_to_do(
    server_state: &ServerState,
    reader: &Reader<'_>,
    place: &Place<'_>,
    verb: &Method,
) -> Response {
    let now = server_state.engine.clock().now();
    if place.resource.is_none() {
        let text = format!("nothing is served at this path; there are {PATHS}");
        return respond::refuse(reader, &Error::new(ErrorKind::MethodNotFound, text), now);
    }
    let allowed = place.allowed();
    let verb: String = verb.as_str().chars().take(32).collect();
    let text = format!("{verb} does nothing at this path; use {allowed}");
    let error = Error::new(ErrorKind::MethodNotFound, text);
    let mut response = respond::refuse_with(reader, &error, StatusCode::METHOD_NOT_ALLOWED.as_u16(), now);
    if let Ok(allowed) = HeaderValue::try_from(allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// The body where there is one to be read; empty where the path says it all.
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
    place: &Place<'_>,
    query: Option<&str>,
    body: &[u8],
) -> Result<Operation, Error> {
    let address = Address::read(place, query)?;
    place.dialect.decode_request(kind, &address, rest::document(body)?)
}

/// What is around an answer to a request that speaks of a media type of this binding's own, whatever its path.
pub(crate) fn envelope_of(dialect: Dialect, errors: ErrorTable, headers: &HeaderMap) -> Option<Envelope> {
    let media_type = dialect.media_type();
    let said = [header::ACCEPT, header::CONTENT_TYPE].iter().any(|name| names(headers, name, media_type));
    (said && media_type != respond::JSON).then_some(Envelope::Http { media_type, errors })
}

/// What an answer is called. 1.0.1 has a name of its own for it, unless the client speaks of plain JSON or does not want
/// the other; in 1.0.0 it is plain JSON, unless the client asks for the other.
fn media_type(dialect: Dialect, errors: ErrorTable, headers: &HeaderMap) -> &'static str {
    let own = dialect.media_type();
    if own == respond::JSON || names(headers, &header::ACCEPT, own) {
        return own;
    }
    let plain = errors == ErrorTable::V1_0_0
        || weight(headers, &header::ACCEPT, own).is_some()
        || names(headers, &header::ACCEPT, respond::JSON)
        || names(headers, &header::CONTENT_TYPE, respond::JSON);
    if plain { respond::JSON } else { own }
}

/// Whether a header names a media type, other than to say that it is not wanted.
fn names(headers: &HeaderMap, name: &header::HeaderName, media_type: &str) -> bool {
    weight(headers, name, media_type).is_some_and(|weight| weight > 0.0)
}

/// How much a media type is wanted that a header names.
fn weight(headers: &HeaderMap, name: &header::HeaderName, media_type: &str) -> Option<f32> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).find_map(|said| {
        let mut words = said.split(';').map(str::trim);
        words.next().filter(|word| word.eq_ignore_ascii_case(media_type))?;
        let weight = words.find_map(|word| word.strip_prefix("q=").or_else(|| word.strip_prefix("Q=")));
        Some(weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0))
    })
}
