//! The JSON-RPC binding: one POST is one call; batches are not supported.

use axum::response::Response;
use http::{HeaderMap, header};
use protocol::{
    Dialect, Error, Operation, TaskId,
    jsonrpc::{self, Id, Request},
};

use crate::{
    access_log::CallEntry,
    admit::{self, extensions},
    auth, body,
    negotiate::{DialectChoice, Negotiation, NegotiationError},
    perform::perform,
    respond::{self, Envelope, ResponseFormat},
    server_state::{Endpoint, ServerState},
    sse,
    version::Version,
};

/// Handles one request to one agent.
pub(crate) async fn handle(
    server_state: &ServerState,
    endpoint: Endpoint<'_>,
    req: axum::extract::Request,
) -> Response {
    let request_id = fastrand::u64(..);
    let mut log_entry = CallEntry::begin(&endpoint, request_id);
    let (head, incoming) = req.into_parts();
    let memory = server_state.engine.memory().begin();
    let version = Version::of(&head.headers, &head.uri);
    let negotiation = Negotiation {
        version: &version,
        profile: endpoint.profile(),
        accepted_versions: server_state.accepted_versions,
    };
    let mut format = ResponseFormat {
        envelope: Envelope::Rpc(Id::null()),
        dialect: negotiation.fallback_dialect(),
        profile: endpoint.profile(),
    };
    let answered = async {
        body::check_media_type(&head.headers, format.dialect, server_state.errors)?;
        body::check_encoding(&head.headers)?;
        let bytes = body::read(incoming, server_state.max_body_bytes, &memory).await?;
        let request = jsonrpc::decode(&bytes).map_err(|refusal| {
            format.envelope = Envelope::Rpc(refusal.id);
            refusal.error
        })?;
        format.envelope = Envelope::Rpc(request.id.clone());
        log_entry.set_method_if_known(&request.method);
        let operation =
            decode(server_state, &endpoint, negotiation, &head.headers, &request, &mut format.dialect)
                .await?;
        log_entry.set_operation(&operation, format.dialect);
        // Free the body before a call that may run for long.
        drop(bytes);
        perform(server_state, &endpoint, format.dialect, &head, operation, request_id, &memory).await
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
            let error_response = if wants_event_stream(&version, &head.headers) {
                sse::error_response
            } else {
                respond::error_response
            };
            error_response(&format, &error, server_state.engine.clock().now())
        }
    }
}

/// Whether an error must be sent as an event stream. Clients of 0.3 and earlier that request a stream cannot read a
/// plain JSON error. Clients that name their version can, and every client reads errors that have an HTTP status.
fn wants_event_stream(version: &Version, headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    *version == Version::Absent && accept.trim().eq_ignore_ascii_case("text/event-stream")
}

/// Decodes the operation. Sets `dialect` as soon as it is known, also on errors, because the response uses it.
async fn decode(
    server_state: &ServerState,
    endpoint: &Endpoint<'_>,
    negotiation: Negotiation<'_>,
    headers: &HeaderMap,
    request: &Request<'_>,
    dialect: &mut Dialect,
) -> Result<Operation, Error> {
    let choice = negotiation.select(&request.method, request.versioned).map_err(|refused| {
        let NegotiationError { dialect: dialect_of_error, error } = refused;
        *dialect = dialect_of_error;
        error
    })?;
    let leniency = endpoint.profile().leniency;
    let decode = |dialect: Dialect| dialect.decode_operation_with(&request.method, request.params, leniency);
    // The draft's decoder accepts every id that 0.3's does.
    *dialect = if let DialectChoice::Dialect(dialect) = choice { dialect } else { Dialect::Draft };
    endpoint.check_access()?;
    if let Some(kind) = dialect.operation(&request.method) {
        admit::check_operation(endpoint, kind)?;
    }
    *dialect = match choice {
        DialectChoice::Dialect(dialect) => dialect,
        DialectChoice::TaskOrigin => {
            let operation = decode(Dialect::Draft)?;
            let origin = match shared_method_task(&operation) {
                Some(task) => server_state.engine.origin(&endpoint.scope(), task).await.unwrap_or_default(),
                None => None,
            };
            match origin {
                // The draft's form of "task not found" can be read by clients of both generations.
                None | Some(Dialect::Draft) => Dialect::Draft,
                Some(Dialect::V03 | Dialect::V03Proto | Dialect::V1) => Dialect::V03,
            }
        }
    };
    let operation = decode(*dialect)?;
    auth::check_tenant(operation.tenant())?;
    admit::check_request(endpoint, *dialect, headers, operation)
}

/// The task that an operation names, for the methods that the draft and 0.3 share.
fn shared_method_task(operation: &Operation) -> Option<&TaskId> {
    match operation {
        Operation::GetTask(req) => Some(&req.id),
        Operation::CancelTask(req) => Some(&req.id),
        Operation::SubscribeToTask(req) => Some(&req.id),
        _ => None,
    }
}
