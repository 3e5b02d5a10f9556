//! The extended card for clients of 0.2, which has no method for it: the HTTP status reports the result.

use axum::response::Response;
use http::StatusCode;
use protocol::{Dialect, ErrorKind, GetExtendedCard, Operation, OperationKind};

use crate::{
    request::{decoded_request::DecodedRequest, exchange::Exchange, negotiate::NegotiationError},
    response::respond::{self, Envelope, ResponseFormat},
};

/// Handles one request.
pub(crate) async fn handle(mut exchange: Exchange) -> Response {
    let (kind, dialect) = (OperationKind::GetExtendedCard, Dialect::V03);
    exchange.set_method_of(kind);
    let version = exchange.version();
    let operation = Ok(Operation::GetExtendedCard(GetExtendedCard::default()));
    let request = match exchange.negotiation(&version).check_path(dialect) {
        Ok(()) => Ok(DecodedRequest::new(kind, dialect, operation)),
        Err(NegotiationError { error, .. }) => Err(error),
    };
    let result = DecodedRequest::run(request, &mut exchange).await;
    let envelope = Envelope::Http { media_type: respond::JSON, errors: exchange.server.errors };
    match result {
        Ok(answer) => exchange.respond(envelope, dialect, Ok(answer)),
        Err(error) => {
            let status = match error.kind {
                ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
                ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
                _ => StatusCode::NOT_FOUND,
            };
            let format = ResponseFormat { envelope, dialect, profile: exchange.endpoint.profile() };
            let response =
                respond::error_response_with_status(&format, &error, status.as_u16(), exchange.now());
            exchange.log_entry.finish(dialect);
            response
        }
    }
}
