//! Turns the response of an operation into the reply of its call.

use engine::OnCrash;
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use protocol::{Content, Json, Part};

use super::{operation::Plan, parameter::is_json};
use crate::backend::{Failure, Reply};

/// Reads a response and replies with its content.
pub(super) async fn respond(plan: &Plan, response: Response<Incoming>) -> Reply {
    let (head, body) = response.into_parts();
    match Limited::new(body, plan.max_response).collect().await {
        Ok(body) => reply(plan, head.status, &head.headers, &body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Reply::fail(format!("the response exceeds {} bytes", plan.max_response))
        }
        Err(_) => no_response(plan, "the connection was lost before the response was complete"),
    }
}

/// No response, or not all of it: the operation may have been executed.
pub(super) fn no_response(plan: &Plan, problem: &str) -> Reply {
    if plan.is_repeatable() { Reply::retry(problem) } else { Reply::fail(problem) }
}

fn reply(plan: &Plan, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Reply {
    let content = content(headers, body);
    if status.is_success() {
        return Reply::Done(vec![content.unwrap_or_else(|| Part::text(status_line(status)))]);
    }
    let mut text = format!("the server responded {}", status_line(status));
    if let Some(description) = plan.errors.description(status) {
        text = format!("{text}: {description}");
    }
    if status.is_redirection() {
        text.push_str(" (redirects are not followed)");
    }
    let parts: Vec<Part> = [Part::text(text)].into_iter().chain(content).collect();
    match status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Reply::Rejected(parts),
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => {
            Reply::Failed(Failure { parts, reason: None, retryable: plan.is_repeatable() })
        }
        _ => Reply::Failed(Failure { parts, reason: None, retryable: false }),
    }
}

/// `404 Not Found`.
fn status_line(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_str()),
        None => status.as_str().to_owned(),
    }
}

/// JSON as data, text as text, anything else as a file; `None` for an empty body.
fn content(headers: &HeaderMap, body: &[u8]) -> Option<Part> {
    if body.is_empty() {
        return None;
    }
    let media_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let text = std::str::from_utf8(body);
    if is_json(media_type)
        && let Ok(text) = text
        && let Ok(json) = Json::parse(text)
    {
        return Some(Part::data(json));
    }
    let media_type = (!media_type.is_empty()).then(|| media_type.to_owned());
    let is_text = media_type.as_deref().is_some_and(|name| name.to_ascii_lowercase().starts_with("text/"));
    let content = match text {
        Ok(text) if is_text => Content::Text(text.to_owned()),
        _ => Content::Raw(body.to_vec()),
    };
    Some(Part { media_type, ..Part::new(content) })
}

impl Plan {
    /// Whether repeating the request has no further effect.
    fn is_repeatable(&self) -> bool {
        self.on_crash == OnCrash::Retry
    }
}
