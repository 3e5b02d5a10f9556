//! The plain text binding: a message in, the result out, without any protocol envelope.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use engine::{CallResponse, Reservation};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use protocol::{
    Content, Dialect, Error, ErrorKind, Message, Operation, Part, Reply, Role, SendMessage, Task, TaskState,
    dialect::{v1, v03},
    json::write::Writer,
};

use crate::{
    access_log::CallEntry,
    admit, body, respond,
    server_state::{Endpoint, ServerState},
};

/// Whether the content type is `text/plain`.
pub(crate) fn is_text_request(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/plain")
}

pub(crate) async fn handle(
    server_state: &ServerState,
    endpoint: Endpoint<'_>,
    req: axum::extract::Request,
) -> Response {
    let request_id = fastrand::u64(..);
    let mut log_entry = CallEntry::begin(&endpoint, request_id);
    log_entry.set_method("text");
    let (head, incoming) = req.into_parts();
    let memory = server_state.engine.memory().begin();
    let answered = async {
        endpoint.check_access()?;
        body::check_encoding(&head.headers)?;
        let bytes = body::read(incoming, server_state.max_body_bytes, &memory).await?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| Error::new(ErrorKind::Parse, "the body is not UTF-8; send text"))?;
        // No message id, so that only the idempotency key identifies a repeated request.
        let message = Message::new("", Role::User, vec![Part::text(text)]);
        let call = endpoint.call(Dialect::V1, &head.headers, &memory)?;
        let operation = Operation::SendMessage(SendMessage::new(message));
        let operation = admit::check_request(&endpoint, Dialect::V1, &head.headers, operation)?;
        server_state
            .engine
            .call(call, operation)
            .await
            .map_err(|error| respond::to_caller_error(error, request_id))
    };
    let answered = answered.await;
    log_entry.set_result(&answered);
    log_entry.finish_text();
    match answered {
        Ok(answer) => answer_with(answer, memory),
        Err(error) => error_response(server_state, &error),
    }
}

fn answer_with(answer: CallResponse, memory: Arc<Reservation>) -> Response {
    match answer {
        CallResponse::Reply(Reply::SentTask(task)) => {
            let mut response = text(result_text(&task), memory);
            let headers = response.headers_mut();
            let state = v03::task::state_name(task.status.state);
            for (name, value) in [("a2ad-task", task.id.as_str()), ("a2ad-state", state)] {
                if let Ok(value) = HeaderValue::from_str(value) {
                    headers.insert(name, value);
                }
            }
            response
        }
        CallResponse::Reply(Reply::SentMessage(message)) => text(texts(&message.parts), memory),
        CallResponse::Reply(_) | CallResponse::Stream(_) => text(String::new(), memory),
        CallResponse::Replayed(answer) => respond::replayed(answer_with(*answer, memory)),
    }
}

/// The text of a task's result: the artifacts of a completed task, otherwise the message of its status.
fn result_text(task: &Task) -> String {
    let status_text = task.status.message.as_ref().map(|message| texts(&message.parts)).unwrap_or_default();
    let produced: Vec<String> = task.artifacts.iter().map(|artifact| texts(&artifact.parts)).collect();
    if task.status.state == TaskState::Completed && !produced.is_empty() {
        produced.join("\n")
    } else {
        status_text
    }
}

fn texts(parts: &[Part]) -> String {
    let text = |part: &Part| match &part.content {
        Content::Text(text) | Content::Url(text) => text.clone(),
        Content::Data(json) => json.as_str().to_owned(),
        Content::Raw(bytes) => format!("({} bytes)", bytes.len()),
    };
    parts.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn text(body: String, memory: Arc<Reservation>) -> Response {
    let mut response = Response::new(Body::from(memory.hold(body.into_bytes())));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// Errors are JSON here too, so that no client takes one for a result.
fn error_response(server_state: &ServerState, error: &Error) -> Response {
    let row = error.kind.row();
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.key("error");
        v1::error::encode(writer, error, server_state.engine.clock().now());
    });
    let mut response = respond::json(writer.finish());
    *response.status_mut() = StatusCode::from_u16(row.http).unwrap_or(StatusCode::BAD_REQUEST);
    respond::set_retry_and_auth_headers(&mut response, error);
    response
}
