//! JSON-RPC: one POST is one call.

use axum::response::Response;
use engine::Answer;
use http::{HeaderMap, header};
use protocol::{
    Dialect, Error, ErrorKind, Operation, OperationKind, TaskId,
    dialect::Leniency,
    jsonrpc::{self, Id, Request},
};

use crate::{
    body,
    choose::{Asked, Choice, Refused},
    project,
    respond::{self, Reader},
    routes::{Doors, Mount},
    sse,
    trace::Line,
    version::Version,
};

/// Answers one request to one agent.
pub(crate) async fn handle(doors: &Doors, mount: Mount<'_>, req: axum::extract::Request) -> Response {
    let request_id = fastrand::u64(..);
    let mut line = Line::begin(mount.agent, Some(request_id));
    let (head, incoming) = req.into_parts();
    let version = Version::of(&head.headers, &head.uri);
    let asked = Asked { version: &version, profile: mount.profile, spoken: doors.spoken };
    let mut reader = Reader { id: Id::null(), dialect: asked.fallback(), profile: mount.profile };
    let answered = async {
        check_media_type(&head.headers)?;
        body::check_encoding(&head.headers)?;
        let bytes = body::read(incoming, doors.max_body_bytes).await?;
        let request = jsonrpc::decode(&bytes).map_err(|refusal| {
            reader.id = refusal.id;
            refusal.error
        })?;
        reader.id = request.id.clone();
        line.asked(&request.method);
        let operation = decode(doors, &mount, asked, &request, &mut reader.dialect).await?;
        line.about(&operation);
        let call = mount.call(reader.dialect, &head.headers);
        doors.engine.call(call, operation).await.map_err(|error| respond::explain(error, request_id))
    };
    let answered = answered.await;
    line.answered(&answered);
    let dialect = reader.dialect;
    let response = match answered {
        Ok(answer) => answer_with(doors, reader, answer, request_id),
        Err(error) if wants_events(&version, &head.headers) => {
            sse::refuse(&reader, &error, doors.engine.clock().now())
        }
        Err(error) => respond::refuse(&reader, &error, doors.engine.clock().now()),
    };
    line.end(dialect, response)
}

/// Clients of 0.3 and before that ask for events cannot read a refusal that is none; those that name their version can,
/// and everybody reads what HTTP itself refuses.
fn wants_events(version: &Version, headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    *version == Version::Absent && accept.trim().eq_ignore_ascii_case("text/event-stream")
}

fn answer_with(doors: &Doors, reader: Reader<'_>, answer: Answer, request_id: u64) -> Response {
    match answer {
        Answer::Reply(reply) => match project::reply(reader.profile, reply) {
            Ok(reply) => reader.label(respond::json(jsonrpc::encode_result(&reader.id, |writer| {
                reader.dialect.encode_reply(writer, &reply, reader.profile.style);
            }))),
            Err(error) => respond::refuse(&reader, &error, doors.engine.clock().now()),
        },
        Answer::Stream(stream) => sse::respond(stream, &reader, request_id, doors.engine.clock().clone()),
        Answer::Replayed(answer) => respond::replayed(answer_with(doors, reader, *answer, request_id)),
    }
}

/// What is asked, in the dialect that is found on the way.
async fn decode(
    doors: &Doors,
    mount: &Mount<'_>,
    asked: Asked<'_>,
    request: &Request<'_>,
    dialect: &mut Dialect,
) -> Result<Operation, Error> {
    let choice = asked.choose(&request.method, request.versioned).map_err(|refused| {
        let Refused { dialect: told_in, error } = refused;
        *dialect = told_in;
        error
    })?;
    let leniency: Leniency = mount.profile.leniency;
    let decode =
        |dialect: Dialect| dialect.decode_operation_leniently(&request.method, request.params, leniency);
    // The draft's decoder takes every id that 0.3's does.
    *dialect = if let Choice::Dialect(dialect) = choice { dialect } else { Dialect::Draft };
    mount.check()?;
    if let Some(kind) = dialect.operation(&request.method) {
        serves(mount, kind)?;
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
    Ok(as_house_wants(mount, *dialect, operation))
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

/// Whether the house and the agent serve this at all.
fn serves(mount: &Mount<'_>, kind: OperationKind) -> Result<(), Error> {
    if mount.profile.send_only && kind != OperationKind::SendMessage {
        let text = "this agent serves sends that are answered at once, and nothing else";
        return Err(Error::new(ErrorKind::MethodNotFound, text));
    }
    let streams = matches!(kind, OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask);
    if streams && !mount.door.streaming {
        let text = "this agent does not stream; send without streaming, or poll the task";
        return Err(Error::new(mount.profile.stream_off, text));
    }
    Ok(())
}

fn as_house_wants(mount: &Mount<'_>, dialect: Dialect, mut operation: Operation) -> Operation {
    if let (true, Operation::SendMessage(req)) = (mount.profile.send_only, &mut operation) {
        // Nobody could ask later what became of it.
        req.return_immediately = false;
    }
    if mount.profile.manners.whole_history && dialect == Dialect::Draft {
        let length = match &mut operation {
            Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => &mut req.history_length,
            Operation::GetTask(req) => &mut req.history_length,
            _ => return operation,
        };
        *length = length.filter(|length| *length > 0);
    }
    operation
}

/// JSON, or nothing said about it.
fn check_media_type(headers: &HeaderMap) -> Result<(), Error> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json")
        || essence.eq_ignore_ascii_case("application/a2a+json")
    {
        return Ok(());
    }
    let text = format!("Content-Type {essence:?} is not served here; send application/json");
    Err(Error::new(ErrorKind::UnsupportedMediaType, text))
}
