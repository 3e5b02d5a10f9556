//! JSON-RPC: one POST is one call.

use axum::response::Response;
use engine::{Answer, Call, Resume};
use http::{HeaderMap, HeaderValue, Uri, header};
use protocol::{
    Error, ErrorKind, Operation,
    dialect::v1,
    jsonrpc::{self, Id, Refusal, Request},
};

use crate::{body, respond, routes::Doors, sse, version};

/// Answers one request to one agent.
pub(crate) async fn handle(doors: &Doors, call: Call, req: axum::extract::Request) -> Response {
    let request_id = format!("{:016x}", fastrand::u64(..));
    let (head, incoming) = req.into_parts();
    let answered = async {
        check_media_type(&head.headers)?;
        let bytes = body::read(incoming, doors.max_body_bytes).await.map_err(anonymous)?;
        let request = jsonrpc::decode(&bytes)?;
        let id = request.id.clone();
        let operation =
            decode(&head.headers, &head.uri, &request).map_err(|error| Refusal { id: id.clone(), error })?;
        match doors.engine.call(with_headers(call, &head.headers), operation).await {
            Ok(answer) => Ok((id, answer)),
            Err(error) => Err(Refusal { id, error: respond::explain(error, &request_id) }),
        }
    };
    match answered.await {
        Ok((id, answer)) => respond(doors, &id, answer, request_id),
        Err(Refusal { id, error }) => respond::refuse(&id, &error, doors.engine.clock().now()),
    }
}

fn respond(doors: &Doors, id: &Id, answer: Answer, request_id: String) -> Response {
    match answer {
        Answer::Reply(reply) => {
            respond::json(jsonrpc::encode_result(id, |writer| v1::reply::encode(writer, &reply)))
        }
        Answer::Stream(stream) => sse::respond(stream, id, request_id, doors.engine.clock().clone()),
        Answer::Replayed(answer) => {
            let mut response = respond(doors, id, *answer, request_id);
            response.headers_mut().insert("a2ad-replayed", HeaderValue::from_static("true"));
            response
        }
    }
}

/// What the headers say about a call: its name for repetitions, and where its last stream broke off.
fn with_headers(call: Call, headers: &HeaderMap) -> Call {
    let text =
        |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let resume = text("last-event-id")
        .map(|seen| engine::cursor::last_event_id(&seen).map_or(Resume::Unknown, Resume::After));
    Call { idempotency_key: text("idempotency-key"), resume, ..call }
}

/// The version is judged before the method: a generation we do not speak has no methods here.
fn decode(headers: &HeaderMap, uri: &Uri, request: &Request<'_>) -> Result<Operation, Error> {
    version::check(headers, uri)?;
    v1::operation::decode(&request.method, request.params)
}

/// JSON, or nothing said about it.
fn check_media_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json")
        || essence.eq_ignore_ascii_case("application/a2a+json")
    {
        return Ok(());
    }
    let text = format!("Content-Type {essence:?} is not served here; send application/json");
    Err(anonymous(Error::new(ErrorKind::UnsupportedMediaType, text)))
}

fn anonymous(error: Error) -> Refusal {
    Refusal { id: Id::null(), error }
}
