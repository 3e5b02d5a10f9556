//! The HTTP+JSON (REST) binding: method and path name the operation, the status its result.
//!
//! Paths are parsed by hand (`protocol::rest`), because ids may contain slashes and colons and a verb follows them. Every
//! request below such a path gets a response in this binding's form, including unknown paths, wrong methods and bodies
//! that cannot be decoded.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use hyper::body::Body as _;
use protocol::{
    Dialect, Error, ErrorKind, ErrorTable, Operation, OperationKind, Violation,
    rest::{self, Address, ResourcePath},
};

use crate::{
    request::{body, decoded_request::DecodedRequest, exchange::Exchange, negotiate::NegotiationError},
    response::{
        refusal::{self, Refusal},
        respond::{self, Envelope},
    },
};

/// The served paths, for the error text of an unknown path.
pub(crate) const PATHS: &str = "/message:send, /message:stream, /tasks, /tasks/{id}, /tasks/{id}:cancel, \
                     /tasks/{id}:subscribe, /tasks/{id}/pushNotificationConfigs, \
                     /tasks/{id}/pushNotificationConfigs/{id} and /extendedAgentCard";

/// Handles one request.
pub(crate) async fn handle(mut exchange: Exchange, body: Body) -> Response {
    let (Some(dialect), Some(kind)) = (exchange.dialect, exchange.operation) else {
        return refusal::respond(exchange, &Refusal::NotFound);
    };
    exchange.set_method_of(kind);
    let version = exchange.version();
    let envelope = envelope(dialect, exchange.server.errors, &exchange.head.headers);
    if let Err(NegotiationError { dialect, error }) = exchange.negotiation(&version).check_path(dialect) {
        exchange.log_entry.set_error(&error);
        return exchange.respond(envelope, dialect, Err(error));
    }
    let operation = read(&exchange, dialect, kind, body).await;
    let request =
        operation.map(|operation| DecodedRequest::new(kind, dialect, operation).with_keep_alive(&exchange));
    let result = DecodedRequest::run(request, &mut exchange).await;
    exchange.respond(envelope, dialect, result)
}

/// Reads the body, which is empty for operations that are fully described by their path, and decodes it.
async fn read(
    exchange: &Exchange,
    dialect: Dialect,
    kind: OperationKind,
    body: Body,
) -> Result<Result<Operation, Error>, Error> {
    let head = &exchange.head;
    let optional = matches!(kind, OperationKind::CancelTask | OperationKind::SubscribeToTask);
    let bytes = if head.method != Method::POST || optional && body.is_end_stream() {
        Bytes::new()
    } else {
        body::check_media_type(&head.headers, dialect, exchange.server.errors)?;
        exchange.read_body(body).await?
    };
    if bytes.is_empty() && head.method == Method::POST && !optional {
        return Err(Error::invalid_request(Violation::new("", "the body is empty, expected an object")));
    }
    Ok(decode(kind, exchange.rest(), head.uri.query(), &bytes))
}

fn decode(kind: OperationKind, path: &str, query: Option<&str>, body: &[u8]) -> Result<Operation, Error> {
    let resource = ResourcePath::parse(path)
        .ok_or_else(|| Error::new(ErrorKind::MethodNotFound, "nothing is served at this path"))?;
    let address = Address::read(&resource, query)?;
    resource.dialect.decode_request(kind, &address, rest::document(body)?)
}

/// The response envelope of a request that names this binding's own media type, whatever its path.
pub(crate) fn requested_envelope(
    dialect: Dialect,
    errors: ErrorTable,
    headers: &HeaderMap,
) -> Option<Envelope> {
    let media_type = dialect.rules().media_type;
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
    let own = dialect.rules().media_type;
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
    media_ranges(headers, name)
        .find_map(|(range, quality)| range.eq_ignore_ascii_case(media_type).then_some(quality))
}

/// The media ranges that a header names, without parameters, and the quality value of each.
pub(crate) fn media_ranges<'a>(
    headers: &'a HeaderMap,
    name: &header::HeaderName,
) -> impl Iterator<Item = (&'a str, f32)> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|media_range| {
        let (range, parameters) = media_range.split_once(';').unwrap_or((media_range, ""));
        let quality = parameters
            .split(';')
            .map(str::trim)
            .find_map(|parameter| parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q=")));
        (range.trim(), quality.and_then(|quality| quality.parse().ok()).unwrap_or(1.0))
    })
}
