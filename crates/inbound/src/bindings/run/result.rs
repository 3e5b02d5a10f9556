//! A task as a response: its result if it is completed, else its state.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use engine::Reservation;
use http::{HeaderValue, StatusCode, header};
use protocol::{
    Content, ContextId, Part, Task, TaskId, TaskState, TaskStatus,
    dialect::{v1, v03},
    json::write::Writer,
    rest::percent_encode,
};

use crate::{bindings::skill_call, response::respond};

/// The response for a task: its status code is the task's state.
pub(super) fn of_task(task: &Task, memory: Arc<Reservation>) -> Response {
    let status = status_code(task.status.state);
    let mut response = if status == StatusCode::OK {
        of_parts(&skill_call::result(task), memory)
    } else {
        let mut writer = Writer::new();
        encode_state(&mut writer, &task.id, &task.context_id, &task.status);
        respond::json(memory.hold(writer.finish()))
    };
    *response.status_mut() = status;
    let state = HeaderValue::from_static(v03::task::state_name(task.status.state));
    response.headers_mut().insert("a2ad-state", state);
    response
}

fn status_code(state: TaskState) -> StatusCode {
    match state {
        TaskState::Completed => StatusCode::OK,
        TaskState::Unspecified | TaskState::Submitted | TaskState::Working => StatusCode::ACCEPTED,
        TaskState::InputRequired | TaskState::AuthRequired | TaskState::Canceled => StatusCode::CONFLICT,
        TaskState::Rejected => StatusCode::UNPROCESSABLE_ENTITY,
        TaskState::Failed => StatusCode::BAD_GATEWAY,
    }
}

/// Writes the state of a task with its status message: `message` for people, `parts` for programs.
pub(super) fn encode_state(writer: &mut Writer, task: &TaskId, context: &ContextId, status: &TaskStatus) {
    writer.object(|out| {
        out.text("taskId", task.as_str());
        out.text("contextId", context.as_str());
        out.text("state", v03::task::state_name(status.state));
        if let Some(message) = &status.message {
            out.text("message", &message.text());
            out.key("parts").array(&message.parts, v1::message::encode_part);
        }
    });
}

/// A result: the content of a single part as it is, else all parts as JSON.
fn of_parts(parts: &[&Part], memory: Arc<Reservation>) -> Response {
    let single = match parts {
        [part] => content(part),
        _ => None,
    };
    let (media_type, bytes) = single.unwrap_or_else(|| {
        let mut writer = Writer::new();
        writer.object(|out| {
            out.key("parts").array(parts, |out, part| v1::message::encode_part(out, part));
        });
        (respond::JSON.to_owned(), writer.finish())
    });
    let mut response = Response::new(Body::from(memory.hold(bytes)));
    let headers = response.headers_mut();
    let filename = match parts {
        [Part { filename, content: Content::Raw(_) | Content::Text(_), .. }] => filename.as_deref(),
        _ => None,
    };
    // The media type is the agent's: a browser must not show the response as a page of this server.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    let disposition = disposition(&media_type, filename).and_then(|value| HeaderValue::try_from(value).ok());
    headers.extend(disposition.map(|value| (header::CONTENT_DISPOSITION, value)));
    let media_type = HeaderValue::try_from(media_type).unwrap_or(OCTETS);
    headers.insert(header::CONTENT_TYPE, media_type);
    response
}

/// Files, and what is neither plain text nor JSON, are to be saved; `None` for the rest.
fn disposition(media_type: &str, filename: Option<&str>) -> Option<String> {
    let essence = super::essence(media_type);
    let is_inert = essence.eq_ignore_ascii_case(super::TEXT) || super::is_json(essence);
    match filename {
        Some(filename) => {
            let mut value = "attachment; filename*=UTF-8''".to_owned();
            percent_encode(&mut value, filename);
            Some(value)
        }
        None if is_inert => None,
        None => Some("attachment".to_owned()),
    }
}

const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Media type and bytes of a part; `None` for a URL, whose content is elsewhere.
fn content(part: &Part) -> Option<(String, Vec<u8>)> {
    let media_type = part.media_type.as_deref();
    match &part.content {
        Content::Data(json) => Some((respond::JSON.to_owned(), json.as_str().as_bytes().to_vec())),
        Content::Text(text) => {
            Some((with_charset(media_type.unwrap_or("text/plain")), text.as_bytes().to_vec()))
        }
        Content::Raw(bytes) => {
            Some((media_type.unwrap_or("application/octet-stream").to_owned(), bytes.clone()))
        }
        Content::Url(_) => None,
    }
}

/// Texts are UTF-8, which readers of `text/*` do not assume.
fn with_charset(media_type: &str) -> String {
    let is_assumed = !media_type.starts_with("text/") || media_type.contains("charset=");
    if is_assumed { media_type.to_owned() } else { format!("{media_type}; charset=utf-8") }
}
