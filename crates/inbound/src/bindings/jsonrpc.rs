//! JSON-RPC: one POST is one call.

use axum::response::Response;
use http::{HeaderMap, header};
use protocol::{
    Dialect, Error, Operation, TaskId,
    jsonrpc::{self, Id, Request},
};

use crate::{
    admit::{self, extensions},
    auth, body,
    choose::{Asked, Choice, Refused},
    perform::perform,
    respond::{self, Envelope, Reader},
    server_state::{Endpoint, ServerState},
    sse,
    trace::Line,
    version::Version,
};

/// Answers one request to one agent.
pub(crate) async fn handle(
    server_state: &ServerState,
    endpoint: Endpoint<'_>,
    req: axum::extract::Request,
) -> Response {
    let request_id = fastrand::u64(..);
    let mut line = Line::begin(server_state.engine.agents(), endpoint.agent, request_id);
    let (head, incoming) = req.into_parts();
    let memory = server_state.engine.memory().begin();
    let version = Version::of(&head.headers, &head.uri);
    let asked = Asked {
        version: &version,
        profile: endpoint.profile,
        accepted_versions: server_state.accepted_versions,
    };
    let mut reader =
        Reader { envelope: Envelope::Rpc(Id::null()), dialect: asked.fallback(), profile: endpoint.profile };
    let answered = async {
        body::check_media_type(&head.headers, reader.dialect, server_state.errors)?;
        body::check_encoding(&head.headers)?;
        let bytes = body::read(incoming, server_state.max_body_bytes, &memory).await?;
        let request = jsonrpc::decode(&bytes).map_err(|refusal| {
            reader.envelope = Envelope::Rpc(refusal.id);
            refusal.error
        })?;
        reader.envelope = Envelope::Rpc(request.id.clone());
        line.asked(&request.method);
        let operation =
            decode(server_state, &endpoint, asked, &head.headers, &request, &mut reader.dialect).await?;
        line.about(&operation, reader.dialect);
        // A call may take its time; the body is read.
        drop(bytes);
        perform(server_state, &endpoint, reader.dialect, &head, operation, request_id, &memory).await
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
            let refuse = if wants_events(&version, &head.headers) { sse::refuse } else { respond::refuse };
            refuse(&reader, &error, server_state.engine.clock().now())
        }
    }
}

/// Clients of 0.3 and before that ask for events cannot read a refusal that is none; those that name their version can,
/// and everybody reads what HTTP itself refuses.
fn wants_events(version: &Version, headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    *version == Version::Absent && accept.trim().eq_ignore_ascii_case("text/event-stream")
}

/// What is asked, in the dialect that is found on the way.
async fn decode(
    server_state: &ServerState,
    endpoint: &Endpoint<'_>,
    asked: Asked<'_>,
    headers: &HeaderMap,
    request: &Request<'_>,
    dialect: &mut Dialect,
) -> Result<Operation, Error> {
    let choice = asked.choose(&request.method, request.versioned).map_err(|refused| {
        let Refused { dialect: told_in, error } = refused;
        *dialect = told_in;
        error
    })?;
    let leniency = endpoint.profile.leniency;
    let decode =
        |dialect: Dialect| dialect.decode_operation_leniently(&request.method, request.params, leniency);
    // The draft's decoder takes every id that 0.3's does.
    *dialect = if let Choice::Dialect(dialect) = choice { dialect } else { Dialect::Draft };
    endpoint.check()?;
    if let Some(kind) = dialect.operation(&request.method) {
        admit::operation(server_state, endpoint, kind)?;
    }
    *dialect = match choice {
        Choice::Dialect(dialect) => dialect,
        Choice::OfTask => {
            let operation = decode(Dialect::Draft)?;
            let origin = match named(&operation) {
                Some(task) => server_state.engine.origin(&endpoint.scope(), task).await.unwrap_or_default(),
                None => None,
            };
            // A task that is not there is told in a way that both of them read.
            if matches!(origin, None | Some(Dialect::Draft)) { Dialect::Draft } else { Dialect::V03 }
        }
    };
    let operation = decode(*dialect)?;
    auth::check_tenant(operation.tenant())?;
    admit::request(server_state, endpoint, *dialect, headers, operation)
}

/// The task an operation of the shared names is about.
fn named(operation: &Operation) -> Option<&TaskId> {
    match operation {
        Operation::GetTask(req) => Some(&req.id),
        Operation::CancelTask(req) => Some(&req.id),
        Operation::SubscribeToTask(req) => Some(&req.id),
        _ => None,
    }
}
