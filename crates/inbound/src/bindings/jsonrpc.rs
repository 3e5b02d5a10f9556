//! JSON-RPC: one POST is one call.

use axum::response::Response;
use engine::{Answer, Call};
use http::{HeaderMap, Uri, header};
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
        match doors.engine.call(call, operation).await {
            Ok(answer) => Ok((id, answer)),
            Err(error) => Err(Refusal { id, error: respond::explain(error, &request_id) }),
        }
    };
    match answered.await {
        Ok((id, Answer::Reply(reply))) => {
            respond::json(jsonrpc::encode_result(&id, |writer| v1::reply::encode(writer, &reply)))
        }
        Ok((id, Answer::Stream(stream))) => {
            sse::respond(stream, &id, request_id, doors.engine.clock().clone())
        }
        Err(Refusal { id, error }) => respond::refuse(&id, &error, doors.engine.clock().now()),
    }
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
