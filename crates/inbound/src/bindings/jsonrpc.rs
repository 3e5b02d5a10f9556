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
    doors::{Doors, Mount},
    perform::perform,
    respond::{self, Envelope, Reader},
    sse,
    trace::Line,
    version::Version,
};

/// Answers one request to one agent.
pub(crate) async fn handle(doors: &Doors, mount: Mount<'_>, req: axum::extract::Request) -> Response {
    let request_id = fastrand::u64(..);
    let mut line = Line::begin(doors.engine.agents(), mount.agent, request_id);
    let (head, incoming) = req.into_parts();
    let memory = doors.engine.memory().begin();
    let version = Version::of(&head.headers, &head.uri);
    let asked = Asked { version: &version, profile: mount.profile, spoken: doors.spoken };
    let mut reader =
        Reader { envelope: Envelope::Rpc(Id::null()), dialect: asked.fallback(), profile: mount.profile };
    let answered = async {
        body::check_media_type(&head.headers, reader.dialect, doors.errors)?;
        body::check_encoding(&head.headers)?;
        let bytes = body::read(incoming, doors.max_body_bytes, &memory).await?;
        let request = jsonrpc::decode(&bytes).map_err(|refusal| {
            reader.envelope = Envelope::Rpc(refusal.id);
            refusal.error
        })?;
        reader.envelope = Envelope::Rpc(request.id.clone());
        line.asked(&request.method);
        let operation = decode(doors, &mount, asked, &head.headers, &request, &mut reader.dialect).await?;
        line.about(&operation, reader.dialect);
        // A call may take its time; the body is read.
        drop(bytes);
        perform(doors, &mount, reader.dialect, &head, operation, request_id, &memory).await
    };
    let answered = answered.await;
    line.answered(&answered);
    let dialect = reader.dialect;
    match answered {
        Ok(answer) => {
            let response = respond::answer(&reader, answer, line, request_id, doors, memory);
            extensions::tell(response, &mount.door.extensions, dialect, &head.headers)
        }
        Err(error) => {
            line.end(dialect);
            let refuse = if wants_events(&version, &head.headers) { sse::refuse } else { respond::refuse };
            refuse(&reader, &error, doors.engine.clock().now())
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
    doors: &Doors,
    mount: &Mount<'_>,
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
    let leniency = mount.profile.leniency;
    let decode =
        |dialect: Dialect| dialect.decode_operation_leniently(&request.method, request.params, leniency);
    // The draft's decoder takes every id that 0.3's does.
    *dialect = if let Choice::Dialect(dialect) = choice { dialect } else { Dialect::Draft };
    mount.check()?;
    if let Some(kind) = dialect.operation(&request.method) {
        admit::operation(doors, mount, kind)?;
    }
    *dialect = match choice {
        Choice::Dialect(dialect) => dialect,
        Choice::OfTask => {
            let operation = decode(Dialect::Draft)?;
            let origin = match named(&operation) {
                Some(task) => doors.engine.origin(&mount.scope(), task).await.unwrap_or_default(),
                None => None,
            };
            // A task that is not there is told in a way that both of them read.
            if matches!(origin, None | Some(Dialect::Draft)) { Dialect::Draft } else { Dialect::V03 }
        }
    };
    let operation = decode(*dialect)?;
    auth::check_tenant(operation.tenant())?;
    admit::request(doors, mount, *dialect, headers, operation)
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
