//! The JSON-RPC binding: one POST is one call; batches are not supported.
//!
//! Where a path is served as plain text too, only the body distinguishes a JSON-RPC call from a message as a JSON object:
//! a body that is no call and has the form of such a message is handed over.

use axum::{body::Body, response::Response};
use engine::CallResponse;
use http::{HeaderMap, header};
use protocol::{
    Dialect, Error, Operation, OperationKind, SendMessage, TaskId, Violation,
    json::read::{Node, Path},
    jsonrpc::{self, Id, Request},
};

use super::text::{self, json_message};
use crate::{
    request::{
        body,
        decoded_request::DecodedRequest,
        exchange::Exchange,
        negotiate::{DialectChoice, NegotiationError},
        version::Version,
    },
    response::{
        respond::{Envelope, ResponseFormat},
        sse,
    },
};

/// Why a body is not a call.
enum BodyError {
    /// It cannot be decoded.
    Undecodable(UndecodableRequest),
    /// It is a message for the plain text binding.
    PlainMessage(Box<Result<SendMessage, Error>>),
}

/// A request that cannot be decoded: its error, and how to report it.
struct UndecodableRequest {
    id: Id,
    dialect: Dialect,
    error: Error,
}

impl From<UndecodableRequest> for BodyError {
    fn from(undecodable: UndecodableRequest) -> Self {
        Self::Undecodable(undecodable)
    }
}

/// Handles one request.
pub(crate) async fn handle(mut exchange: Exchange, body: Body) -> Response {
    let version = exchange.version();
    let (id, dialect, result) = match read(&mut exchange, &version, body).await {
        Ok((id, request)) => {
            let dialect = request.dialect;
            let request = request.with_keep_alive(&exchange);
            (id, dialect, DecodedRequest::run(Ok(request), &mut exchange).await)
        }
        Err(BodyError::PlainMessage(message)) => {
            // Boxed, so that the future of a call stays small.
            return Box::pin(text::handle_message(exchange, *message)).await;
        }
        Err(BodyError::Undecodable(UndecodableRequest { id, dialect, error })) => {
            exchange.log_entry.set_error(&error);
            (id, dialect, Err(error))
        }
    };
    respond(exchange, &version, id, dialect, result)
}

fn respond(
    exchange: Exchange,
    version: &Version,
    id: Id,
    dialect: Dialect,
    result: Result<CallResponse, Error>,
) -> Response {
    let envelope = Envelope::Rpc(id);
    match result {
        Err(error) if wants_event_stream(version, &exchange.head.headers) => {
            let profile = exchange.endpoint.profile();
            let format = ResponseFormat { envelope, dialect, profile };
            let response = sse::error_response(&format, &error, exchange.now());
            exchange.log_entry.finish(dialect);
            response
        }
        result => exchange.respond(envelope, dialect, result),
    }
}

/// Whether an error must be sent as an event stream. Clients of 0.3 and earlier that request a stream cannot read a
/// plain JSON error. Clients that name their version can, and every client reads errors that have an HTTP status.
fn wants_event_stream(version: &Version, headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    *version == Version::Absent && accept.trim().eq_ignore_ascii_case("text/event-stream")
}

/// Reads and decodes a request; also returns its id.
async fn read(
    exchange: &mut Exchange,
    version: &Version,
    body: Body,
) -> Result<(Id, DecodedRequest), BodyError> {
    let dialect = exchange.negotiation(version).fallback_dialect();
    let undecodable = |error| UndecodableRequest { id: Id::null(), dialect, error };
    body::check_media_type(&exchange.head.headers, dialect, exchange.server.errors).map_err(undecodable)?;
    let bytes = exchange.read_body(body).await.map_err(undecodable)?;
    let request = jsonrpc::decode(&bytes).map_err(|refused| {
        let message = if exchange.row.also_serves_text() { json_message::read(&bytes) } else { None };
        match message {
            Some(message) => BodyError::PlainMessage(Box::new(message)),
            None => UndecodableRequest { id: refused.id, dialect, error: refused.error }.into(),
        }
    })?;
    exchange.log_entry.set_method_if_known(&request.method);
    match decode(exchange, version, &request).await {
        Ok(decoded) => Ok((request.id, decoded)),
        Err(NegotiationError { dialect, error }) => {
            Err(UndecodableRequest { id: request.id, dialect, error }.into())
        }
    }
}

/// Selects the dialect and decodes the operation in it.
async fn decode(
    exchange: &Exchange,
    version: &Version,
    request: &Request<'_>,
) -> Result<DecodedRequest, NegotiationError> {
    let choice = exchange.negotiation(version).select(&request.method, request.versioned)?;
    let leniency = exchange.endpoint.profile().leniency;
    let decode = |dialect: Dialect| dialect.decode_operation_with(&request.method, request.params, leniency);
    let dialect = match choice {
        DialectChoice::Dialect(dialect) => dialect,
        DialectChoice::TaskOrigin => match shared_method_task(decode(Dialect::Draft)) {
            None => Dialect::Draft,
            Some((kind, task)) => match exchange.task_origin(kind, &task).await {
                // The draft's form of "task not found" can be read by clients of both versions.
                None | Some(Dialect::Draft) => Dialect::Draft,
                Some(Dialect::V03 | Dialect::V03Proto | Dialect::V1) => Dialect::V03,
            },
        },
    };
    let operation = decode(dialect);
    match dialect.operation(&request.method) {
        Some(kind) => {
            let key = if leniency.key_in_params { key_in_params(kind, request) } else { Ok(None) };
            let (operation, idempotency_key) = match key {
                Ok(key) => (operation, key),
                Err(violation) => (operation.and(Err(violation.into())), None),
            };
            Ok(DecodedRequest { idempotency_key, ..DecodedRequest::new(kind, dialect, operation) })
        }
        None => {
            let error = operation.err().unwrap_or_else(|| {
                let text = format!("the method {:?} is not supported", request.method);
                Error::new(protocol::ErrorKind::MethodNotFound, text)
            });
            Err(NegotiationError { dialect, error })
        }
    }
}

/// The longest idempotency key in the parameters, in characters.
const MAX_KEY: usize = 128;

/// The parameter `idempotencyKey` of a send.
fn key_in_params(kind: OperationKind, request: &Request<'_>) -> Result<Option<String>, Violation> {
    let (OperationKind::SendMessage | OperationKind::SendStreamingMessage, Some(params)) =
        (kind, request.params)
    else {
        return Ok(None);
    };
    let params = Node::new(params, &Path::Root).bounded().object()?;
    params.maybe("idempotencyKey", |node| match node.string()? {
        key if (1..=MAX_KEY).contains(&key.chars().count()) => Ok(key.into_owned()),
        _ => Err(node.expected(format_args!("1 to {MAX_KEY} characters"))),
    })
}

/// The task that an operation names, for the methods that the draft and 0.3 share. The draft's decoder accepts every id
/// that 0.3's does.
fn shared_method_task(operation: Result<Operation, Error>) -> Option<(OperationKind, TaskId)> {
    let operation = operation.ok()?;
    let kind = operation.kind();
    match operation {
        Operation::GetTask(req) => Some((kind, req.id)),
        Operation::CancelTask(req) => Some((kind, req.id)),
        Operation::SubscribeToTask(req) => Some((kind, req.id)),
        _ => None,
    }
}
