//! The plain text binding: a message in, the result out, without any protocol envelope.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use engine::{CallResponse, Reservation};
use http::{HeaderValue, StatusCode, header};
use protocol::{
    Content, Dialect, Error, ErrorKind, Message, Operation, OperationKind, Part, Reply, Role, SendMessage,
    Task, TaskState,
    dialect::{v1, v03},
    json::write::Writer,
};

use crate::{
    exchange::{DecodedRequest, Exchange},
    respond,
};

/// Handles one request.
pub(crate) async fn handle(mut exchange: Exchange, body: Body) -> Response {
    exchange.log_entry.set_method("text");
    let result = match read(&exchange, body).await {
        Ok(operation) => {
            let (kind, dialect) = (OperationKind::SendMessage, Dialect::V1);
            exchange.run(DecodedRequest { kind, dialect, operation: Ok(operation) }).await
        }
        Err(error) => {
            exchange.log_entry.set_error(&error);
            Err(error)
        }
    };
    let response = match result {
        Ok(answer) => answer_with(answer, Arc::clone(&exchange.memory)),
        Err(error) => error_response(&exchange, &error),
    };
    exchange.log_entry.finish_without_dialect("text");
    response
}

async fn read(exchange: &Exchange, body: Body) -> Result<Operation, Error> {
    let bytes = exchange.read_body(body).await?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Error::new(ErrorKind::Parse, "the body is not UTF-8; send text"))?;
    // No message id, so that only the idempotency key identifies a repeated request.
    let message = Message::new("", Role::User, vec![Part::text(text)]);
    Ok(Operation::SendMessage(SendMessage::new(message)))
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
pub(crate) fn error_response(exchange: &Exchange, error: &Error) -> Response {
    let row = error.kind.row();
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.key("error");
        v1::error::encode(writer, error, exchange.now());
    });
    let mut response = respond::json(writer.finish());
    *response.status_mut() = StatusCode::from_u16(row.http).unwrap_or(StatusCode::BAD_REQUEST);
    respond::set_retry_and_auth_headers(&mut response, error);
    response
}
