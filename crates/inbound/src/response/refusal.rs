//! The response to a request that is refused before its body is read, in the form of the route's binding.

use axum::response::Response;
use engine::Origin;
use http::{HeaderValue, StatusCode, header};
use protocol::{Dialect, Error, ErrorKind, Violation, jsonrpc::Id};

use crate::{
    access::audit,
    addresses::cross_origin,
    bindings::{grpc, operators, process_task, rest, run, text},
    documents::card,
    request::{exchange::Exchange, version::Version},
    response::respond::{self, Envelope, ResponseFormat},
    routes::{self, Access, Handler, Problem},
};

/// Why a request is answered without its handler, before its body is read.
pub(crate) enum Refusal {
    /// It is a preflight of a page with this origin, which may call.
    Preflight(HeaderValue),
    /// Its host, or the origin of the page that sends it.
    Head(StatusCode, Error),
    /// Its caller: it has no credential that permits the call, or calls too often.
    Caller(Error),
    /// Nothing is served at the path.
    NotFound,
    /// The path is served with these methods only.
    MethodNotAllowed(String),
    /// A later version serves the path.
    NotBuilt(&'static str),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::NotFound => Self::NotFound,
            Problem::MethodNotAllowed(allowed) => Self::MethodNotAllowed(allowed),
            Problem::NotBuilt(text) => Self::NotBuilt(text),
        }
    }
}

/// Responds, and records the refusal in the access log and the audit log.
pub(crate) fn respond(mut exchange: Exchange, refusal: &Refusal) -> Response {
    audit::refused(&exchange, refusal);
    let (status, error) = match refusal {
        Refusal::Preflight(origin) => return cross_origin::preflight_response(origin.clone()),
        Refusal::Head(status, error) => (Some(*status), error.clone()),
        Refusal::Caller(error) => (None, error.clone()),
        Refusal::NotFound => (Some(StatusCode::NOT_FOUND), not_found(&exchange)),
        Refusal::NotBuilt(text) => {
            (Some(StatusCode::NOT_IMPLEMENTED), Error::new(ErrorKind::UnsupportedOperation, *text))
        }
        Refusal::MethodNotAllowed(allowed) => {
            (Some(StatusCode::METHOD_NOT_ALLOWED), method_not_allowed(&exchange, allowed))
        }
    };
    match (exchange.row.handler, exchange.operation) {
        (Handler::Text, _) => exchange.log_entry.set_method("text"),
        (Handler::Run, _) => exchange.log_entry.set_method(run::METHOD),
        (Handler::ProcessTask, _) => exchange.log_entry.set_method(process_task::METHOD),
        (_, Some(kind)) => exchange.set_method_of(kind),
        (_, None) => {}
    }
    exchange.log_entry.set_error(&error);
    let is_for_operators = matches!(exchange.row.access, Access::Operator | Access::Monitor);
    let mut response = match exchange.row.handler {
        Handler::Grpc(service) => return grpc::refuse(exchange, service, status, error),
        Handler::Text if status.is_none() => {
            let response = text::error_response(&exchange, &error);
            exchange.log_entry.finish_without_dialect("text");
            return response;
        }
        _ => in_json(exchange, refusal, status, &error),
    };
    if let Refusal::MethodNotAllowed(allowed) = refusal
        && let Ok(allowed) = HeaderValue::try_from(allowed)
    {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    if is_for_operators { operators::without_caching(response) } else { response }
}

fn in_json(exchange: Exchange, refusal: &Refusal, status: Option<StatusCode>, error: &Error) -> Response {
    let dialect = dialect(&exchange, refusal);
    let (errors, headers) = (exchange.server.errors, &exchange.head.headers);
    let envelope = match (exchange.row.handler, refusal) {
        (Handler::Rest, _) => rest::envelope(dialect, errors, headers),
        (
            Handler::Run | Handler::OpenApi | Handler::ProcessTask | Handler::Operators(_) | Handler::Metrics,
            _,
        )
        | (Handler::ExtendedCard, Refusal::Caller(_))
        | (_, Refusal::NotBuilt(_)) => Envelope::Http { media_type: respond::JSON, errors },
        (_, Refusal::Caller(_)) => Envelope::Rpc(Id::null()),
        _ => rest::requested_envelope(dialect, errors, headers).unwrap_or(Envelope::Rpc(Id::null())),
    };
    let format = ResponseFormat { envelope, dialect, profile: exchange.endpoint.profile() };
    let response = match status {
        Some(status) => respond::error_response_with_status(&format, error, status.as_u16(), exchange.now()),
        None => respond::error_response(&format, error, exchange.now()),
    };
    match exchange.row.handler {
        Handler::Run => exchange.log_entry.finish_without_dialect(Origin::Run.label()),
        Handler::ProcessTask => exchange.log_entry.finish_without_dialect(process_task::METHOD),
        _ => exchange.log_entry.finish(dialect),
    }
    response
}

/// The error response to a request that is not a call: in the form of HTTP+JSON if the request names its media type,
/// and in `default_dialect` if it names no version. 1.0 sends readable messages, the other dialects fixed texts that
/// clients compare.
pub(crate) fn error_response(
    exchange: &Exchange,
    default_dialect: Dialect,
    status: StatusCode,
    error: &Error,
) -> Response {
    let dialect = named_dialect(exchange, default_dialect);
    let (errors, headers) = (exchange.server.errors, &exchange.head.headers);
    let envelope = rest::requested_envelope(dialect, errors, headers).unwrap_or(Envelope::Rpc(Id::null()));
    let format = ResponseFormat { envelope, dialect, profile: exchange.endpoint.profile() };
    respond::error_response_with_status(&format, error, status.as_u16(), exchange.now())
}

fn named_dialect(exchange: &Exchange, default: Dialect) -> Dialect {
    match exchange.version() {
        Version::Named(dialect) => dialect,
        Version::Unknown(_) => Dialect::V1,
        Version::Absent => default,
    }
}

/// The dialect of a refusal: that of the path, else the one that the request names.
fn dialect(exchange: &Exchange, refusal: &Refusal) -> Dialect {
    match (exchange.row.handler, refusal) {
        // The messages of the other dialects are fixed, and the reason has to be readable.
        (_, Refusal::Head(..) | Refusal::NotBuilt(_)) => Dialect::V1,
        (Handler::Rest, _) => exchange.dialect.unwrap_or(Dialect::V1),
        (
            Handler::Run | Handler::OpenApi | Handler::ProcessTask | Handler::Operators(_) | Handler::Metrics,
            _,
        ) => Dialect::V1,
        (Handler::ExtendedCard, Refusal::Caller(_)) => Dialect::V03,
        (_, Refusal::Caller(_)) => exchange.negotiation(&exchange.version()).fallback_dialect(),
        _ => named_dialect(exchange, Dialect::V1),
    }
}

fn not_found(exchange: &Exchange) -> Error {
    let cards = routes::patterns(|handler| handler == Handler::Card(card::CardName::AgentCard));
    let cards = cards.join(" and at ");
    let path = exchange.head.uri.path();
    if path.find("/.well-known/").is_some_and(|at| at > 0) {
        let text = format!("no card is served at this path; cards are at {cards}");
        let mut error = Error::new(ErrorKind::MethodNotFound, text.clone());
        // The message of an error in 0.3 is fixed; the text is sent as a detail.
        error.violations.push(Violation::new("path", text));
        return error;
    }
    if exchange.row.handler == Handler::Rest {
        let text =
            format!("nothing is served at this path; the paths are {}; cards are at {cards}", rest::PATHS);
        return Error::new(ErrorKind::MethodNotFound, text);
    }
    let text = format!(
        "nothing is served at this path; send JSON-RPC calls to / or /a2a/{{agent}}, HTTP+JSON calls to \
         /message:send, /tasks and so on, at the root or below /a2a/{{agent}}; cards are at {cards}"
    );
    Error::new(ErrorKind::MethodNotFound, text)
}

fn method_not_allowed(exchange: &Exchange, allowed: &str) -> Error {
    let method: String = exchange.head.method.as_str().chars().take(32).collect();
    let text = format!("method {method} is not allowed at this path; use {allowed}");
    Error::new(ErrorKind::MethodNotFound, text)
}
