//! The only place where an error becomes an answer.

use axum::{body::Body, response::Response};
use http::{HeaderValue, StatusCode, header};
use protocol::{
    Error, ErrorKind, Timestamp,
    dialect::v1,
    jsonrpc::{self, Id},
};

/// What the caller is told of an engine's error; the log is told the rest.
pub(crate) fn explain(error: engine::Error, request_id: &str) -> Error {
    match error {
        engine::Error::Refused(error) => {
            tracing::debug!(kind = ?error.kind, reason = error.message, "refused");
            error
        }
        engine::Error::Unavailable(reason) => {
            tracing::warn!(request_id, reason, "unavailable");
            Error::new(ErrorKind::Unavailable, "not available right now; try again in a second")
        }
        engine::Error::Broken(reason) => {
            tracing::error!(request_id, reason, "broken");
            Error::new(
                ErrorKind::Internal,
                format!("internal error; the log has it under request {request_id}"),
            )
            .with("requestId", request_id)
        }
    }
}

/// An error as a JSON-RPC answer.
pub(crate) fn refuse(id: &Id, error: &Error, now: Timestamp) -> Response {
    let body = jsonrpc::encode_error(id, |writer| v1::error::encode(writer, error, now));
    let status = StatusCode::from_u16(error.kind.row().rpc_http).unwrap_or(StatusCode::OK);
    let mut response = json(body);
    *response.status_mut() = status;
    if matches!(error.kind, ErrorKind::Unavailable | ErrorKind::RateLimited) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Bytes that are JSON.
pub(crate) fn json(body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
