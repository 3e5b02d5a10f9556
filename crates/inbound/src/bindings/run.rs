//! Plain HTTP: the arguments of a skill are the body of a request to `/run/{skill}`, and its result is the response.
//!
//! Every call is a task. `Location` names it in HTTP+JSON, where it can be read, followed, answered and cancelled, unless
//! the agent's profile or the accepted versions exclude that.

mod events;
mod result;
mod wait;

use std::sync::Arc;

use axum::{body::Body, response::Response};
use engine::{CallResponse, Origin, Skill};
use http::{HeaderMap, HeaderValue, header};
use protocol::{
    Dialect, Error, ErrorKind, GetTask, Json, Operation, OperationKind, Reply, TaskId, Violation,
    error::excerpt,
    json::{
        Raw,
        read::{Node, Path},
    },
    nearest_few,
    rest::{self as paths, percent_decode},
};

use super::{
    rest,
    skill_call::{self, Input},
};
use crate::{
    request::{decoded_request::DecodedRequest, exchange::Exchange, version::AcceptedVersions},
    response::respond::{self, Envelope, ResponseFormat},
    routes,
};

/// The name of a call in the access log.
pub(crate) const METHOD: &str = "run";

const EVENT_STREAM: &str = "text/event-stream";
const TEXT: &str = "text/plain";

/// Handles one request.
pub(crate) async fn handle(mut exchange: Exchange, body: Body) -> Response {
    exchange.log_entry.set_method(METHOD);
    let request = decode(&exchange, body).await;
    match DecodedRequest::run(request, &mut exchange).await {
        Ok(answer) => respond(exchange, answer),
        Err(error) => {
            let response = error_response(&exchange, &error);
            exchange.log_entry.finish_without_dialect(Origin::Run.label());
            response
        }
    }
}

/// An error in the form of HTTP+JSON 1.0.
pub(crate) fn error_response(exchange: &Exchange, error: &Error) -> Response {
    let envelope = Envelope::Http { media_type: respond::JSON, errors: exchange.server.errors };
    let format = ResponseFormat { envelope, dialect: Dialect::V1, profile: exchange.endpoint.profile() };
    respond::error_response(&format, error, exchange.now())
}

async fn decode(exchange: &Exchange, body: Body) -> Result<DecodedRequest, Error> {
    let skill = requested_skill(exchange)?;
    let wait = wait::requested(&exchange.head)?;
    let input = read_input(exchange, body).await?;
    let mut request = skill_call::send(&skill, input);
    let (kind, operation) = if wants_events(&exchange.head.headers) {
        (OperationKind::SendStreamingMessage, Operation::SendStreamingMessage(request))
    } else {
        request.return_immediately = wait.is_zero();
        (OperationKind::SendMessage, Operation::SendMessage(request))
    };
    Ok(DecodedRequest { wait: Some(wait), ..DecodedRequest::new(kind, Dialect::V1, Ok(operation)) })
}

/// Whether the caller prefers events to everything else that it accepts. Who accepts a result alike gets the result.
fn wants_events(headers: &HeaderMap) -> bool {
    let ranges = rest::media_ranges(headers, &header::ACCEPT);
    let (mut events, mut others) = (0.0_f32, 0.0_f32);
    for (range, quality) in ranges {
        let best = if range.eq_ignore_ascii_case(EVENT_STREAM) { &mut events } else { &mut others };
        *best = best.max(quality);
    }
    events > others
}

/// How many similar names an error has.
const MAX_SIMILAR: usize = 3;
/// How many names are compared for that: each costs about a microsecond.
const MAX_COMPARED: usize = 5_000;

/// The skill that the path names; an error if it does not exist for the caller.
fn requested_skill(exchange: &Exchange) -> Result<String, Error> {
    let registered = exchange.registered()?;
    let scope = exchange.sender.scope(&exchange.endpoint);
    // A name that is not UTF-8 is the name of no skill.
    let id = percent_decode(exchange.rest()).unwrap_or_default();
    if registered.skill_for(&id, &scope).is_some() {
        return Ok(id.into_owned());
    }
    let known = registered.skills_for(&scope).map(Skill::id).take(MAX_COMPARED);
    let similar = nearest_few(MAX_SIMILAR, &id, known);
    let hint = match similar.as_slice() {
        [] => "the agent's card and openapi.json list its skills".to_owned(),
        similar => format!("did you mean {}?", similar.join(", ")),
    };
    let shown = excerpt(&id);
    Err(Error::new(ErrorKind::MethodNotFound, format!("this agent has no skill {shown:?}; {hint}")))
}

/// The arguments in the body: JSON, or a text. An empty body is an empty object, for skills that require nothing.
async fn read_input(exchange: &Exchange, body: Body) -> Result<Input, Error> {
    let is_text = match media_type(&exchange.head.headers) {
        Some(kind) if kind.eq_ignore_ascii_case(TEXT) => true,
        Some(kind) if is_json(kind) => false,
        None => false,
        Some(kind) => {
            let shown = excerpt(kind);
            let text = format!("Content-Type {shown:?} is not supported; send {} or {TEXT}", respond::JSON);
            return Err(Error::new(ErrorKind::UnsupportedMediaType, text));
        }
    };
    let bytes = exchange.read_body(body).await?;
    if is_text {
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| Error::new(ErrorKind::Parse, "the body is not UTF-8; send text"))?;
        return Ok(Input::Text(text.to_owned()));
    }
    let json = if bytes.is_empty() { b"{}" } else { bytes.as_ref() };
    let raw = Raw::parse(json).map_err(|fault| {
        Error::new(ErrorKind::Parse, format!("the body is not JSON: {fault}: expected the arguments as JSON"))
    })?;
    let arguments: Result<Json, Violation> = Node::new(raw, &Path::Root).bounded().any();
    Ok(Input::Arguments(arguments?))
}

/// The media type of the body without parameters.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    Some(essence(headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or_default()))
}

/// A media type without parameters.
pub(crate) fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

pub(crate) fn is_json(media_type: &str) -> bool {
    let lower = media_type.to_ascii_lowercase();
    lower == respond::JSON || lower.starts_with("application/") && lower.ends_with("+json")
}

fn respond(mut exchange: Exchange, answer: CallResponse) -> Response {
    let memory = Arc::clone(&exchange.memory);
    let response = match answer {
        CallResponse::Noted(note, answer) => return respond::with_note(&note, respond(exchange, *answer)),
        CallResponse::Stream(stream) => return events::respond(exchange, stream),
        CallResponse::Reply(Reply::SentTask(task)) => {
            let response = result::of_task(&task, memory);
            located(response, &exchange, &task.id)
        }
        // Calls of this endpoint are answered with tasks.
        CallResponse::Reply(_) | CallResponse::Pending(_) => {
            let error = Error::new(ErrorKind::Internal, "internal error: the call has no result");
            exchange.log_entry.set_error(&error);
            error_response(&exchange, &error)
        }
    };
    exchange.log_entry.finish_without_dialect(Origin::Run.label());
    response
}

/// Names the task: its id, and where it can be read.
fn located(mut response: Response, exchange: &Exchange, task: &TaskId) -> Response {
    let location = location(exchange, task);
    for (name, value) in [("location", location.as_deref()), ("a2ad-task", Some(task.as_str()))] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The address of a task in HTTP+JSON, in the newest version that is accepted there; `None` if it cannot be read. It
/// stays the same when another agent becomes the default one.
fn location(exchange: &Exchange, task: &TaskId) -> Option<String> {
    if exchange.endpoint.settings().profile.send_only {
        return None;
    }
    let (dialect, query) = match exchange.server.accepted_versions {
        AcceptedVersions { v1: true, lenient_version: true, .. } => (Dialect::V1, ""),
        AcceptedVersions { v1: true, lenient_version: false, .. } => (Dialect::V1, "?A2A-Version=1.0"),
        AcceptedVersions { v1: false, v03: true, .. } => (Dialect::V03Proto, ""),
        AcceptedVersions { v1: false, v03: false, .. } => return None,
    };
    let (_, path) = paths::target(dialect, &Operation::GetTask(GetTask::from(task.clone())))?;
    Some([&routes::agent_path(exchange.endpoint.agent()), path.as_str(), query].concat())
}
