//! The plain text binding: a message in, the result out, without any protocol envelope.
//!
//! A message is the body itself, or [a JSON object](json_message) with a conversation and metadata. The result is a text,
//! or a JSON object for clients that prefer it.

pub(crate) mod json_message;

use std::sync::Arc;

use axum::{body::Body, response::Response};
use engine::{CallResponse, Reservation, TaskPolicy};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use protocol::{
    Content, ContextId, Dialect, Error, ErrorKind, Message, Operation, OperationKind, Part, Reply, Role,
    SendMessage, Task, TaskState,
    dialect::{v1, v03},
    json::write::Writer,
};

use super::rest;
use crate::{
    request::{decoded_request::DecodedRequest, exchange::Exchange},
    response::respond,
    routes::Handler,
};

/// Handles one request whose body is the message.
pub(crate) async fn handle(exchange: Exchange, body: Body) -> Response {
    let message = read(&exchange, body).await;
    handle_message(exchange, message).await
}

/// Handles a message, or the error in reading it.
pub(crate) async fn handle_message(mut exchange: Exchange, message: Result<SendMessage, Error>) -> Response {
    exchange.log_entry.set_binding(Handler::Text);
    exchange.log_entry.set_method("text");
    // A client without task ids answers a task by its conversation.
    let policy = TaskPolicy { resume_by_context: true, ..exchange.endpoint.profile().task_policy };
    let request = message.map(|message| DecodedRequest {
        task_policy: Some(policy),
        ..DecodedRequest::new(OperationKind::SendMessage, Dialect::V1, Ok(Operation::SendMessage(message)))
    });
    let response = match DecodedRequest::run(request, &mut exchange).await {
        Ok(answer) => {
            let form = ResultForm::preferred(&exchange.head.headers);
            answer_with(form, answer, Arc::clone(&exchange.memory))
        }
        Err(error) => error_response(&exchange, &json_message::with_own_names(error)),
    };
    exchange.log_entry.finish_without_dialect("text");
    response
}

async fn read(exchange: &Exchange, body: Body) -> Result<SendMessage, Error> {
    let bytes = exchange.read_body(body).await?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Error::new(ErrorKind::Parse, "the body is not UTF-8; send text"))?;
    Ok(SendMessage::new(user_message(text)))
}

/// A message without an id, so that only the idempotency key identifies a repeated request.
fn user_message(text: &str) -> Message {
    Message::new("", Role::User, vec![Part::text(text)])
}

/// The form of a result.
#[derive(Clone, Copy)]
enum ResultForm {
    Text,
    Json,
}

impl ResultForm {
    /// JSON for clients that name it and do not accept text alike.
    fn preferred(headers: &HeaderMap) -> Self {
        let (mut json, mut text) = (0.0_f32, 0.0_f32);
        for (range, quality) in rest::media_ranges(headers, &header::ACCEPT) {
            match range.to_ascii_lowercase().as_str() {
                respond::JSON => json = json.max(quality),
                "text/plain" | "text/*" => text = text.max(quality),
                _ => {}
            }
        }
        if json > text { Self::Json } else { Self::Text }
    }
}

/// What a response shows of a call.
struct CallSummary<'a> {
    text: String,
    context: Option<&'a str>,
    /// The task with its state; a bare message has none.
    task: Option<(&'a str, &'static str)>,
}

fn answer_with(form: ResultForm, answer: CallResponse, memory: Arc<Reservation>) -> Response {
    match answer {
        CallResponse::Reply(Reply::SentTask(task)) => {
            let state = v03::task::state_name(task.status.state);
            let context = Some(task.context_id.as_str());
            let task_and_state = Some((task.id.as_str(), state));
            respond_with(
                form,
                &CallSummary { text: result_text(&task), context, task: task_and_state },
                memory,
            )
        }
        CallResponse::Reply(Reply::SentMessage(message)) => {
            let context = message.context_id.as_ref().map(ContextId::as_str);
            respond_with(form, &CallSummary { text: texts(&message.parts), context, task: None }, memory)
        }
        CallResponse::Reply(_) | CallResponse::Stream(_) | CallResponse::Pending(_) => {
            respond_with(form, &CallSummary { text: String::new(), context: None, task: None }, memory)
        }
        CallResponse::Noted(note, answer) => respond::with_note(&note, answer_with(form, *answer, memory)),
    }
}

fn respond_with(form: ResultForm, shown: &CallSummary<'_>, memory: Arc<Reservation>) -> Response {
    let mut response = match form {
        ResultForm::Text => {
            let mut response = Response::new(Body::from(memory.hold(shown.text.clone().into_bytes())));
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, plain);
            response
        }
        ResultForm::Json => respond::json(memory.hold(json_message::encode(shown))),
    };
    let (task, state) = shown.task.unzip();
    for (name, value) in [("a2ad-task", task), ("a2ad-state", state), ("a2ad-context", shown.context)] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
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

/// Errors are JSON here too, so that no client takes one for a result.
pub(crate) fn error_response(exchange: &Exchange, error: &Error) -> Response {
    let (error, status) =
        respond::apply_auth_form(exchange.endpoint.profile().auth, error, error.kind.row().http);
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.key("error");
        v1::error::encode(writer, &error, exchange.now());
    });
    let mut response = respond::json(writer.finish());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    respond::set_retry_and_auth_headers(&mut response, &error);
    response
}
