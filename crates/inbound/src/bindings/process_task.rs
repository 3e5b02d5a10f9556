//! The signed request to start the work of one task: `{"taskId": "task_…"}`.
//!
//! Work is started by the server itself; the request makes it look for the work of one task at once. Whoever has the
//! secret may send it, for a task of any caller: the token is signed for the task. A task that runs, waits for its client
//! or has ended is left alone.

use axum::{body::Body, response::Response};
use http::{HeaderMap, header};
use protocol::{
    Error, ErrorKind, TaskId, TaskState, Violation,
    dialect::v03,
    error::excerpt,
    json::{
        Raw,
        read::{Node, Path},
        write::Writer,
    },
};

use super::run;
use crate::{request::exchange::Exchange, response::respond};

/// The name of the request in the access log.
pub(crate) const METHOD: &str = "process-task";

/// Handles one request. Its token has passed every check that needs no body.
pub(crate) async fn handle(mut exchange: Exchange, body: Body) -> Response {
    exchange.log_entry.set_method(METHOD);
    let response = match start(&mut exchange, body).await {
        Ok((task, state)) => {
            exchange.log_entry.set_state(v03::task::state_name(state));
            started(&task, state)
        }
        Err(error) => {
            exchange.log_entry.set_error(&error);
            run::error_response(&exchange, &error)
        }
    };
    exchange.log_entry.finish_without_dialect(METHOD);
    response
}

async fn start(exchange: &mut Exchange, body: Body) -> Result<(TaskId, TaskState), Error> {
    let token = exchange.task_token()?;
    check_media_type(&exchange.head.headers)?;
    let bytes = exchange.read_body(body).await?;
    let task = read_task(&bytes)?;
    let state = exchange.start_work(&token, &task).await?;
    Ok((task, state))
}

/// Accepts JSON, and requests without a content type.
fn check_media_type(headers: &HeaderMap) -> Result<(), Error> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let kind = run::essence(value.to_str().unwrap_or_default());
    if run::is_json(kind) {
        return Ok(());
    }
    let text = format!("Content-Type {:?} is not supported; send {}", excerpt(kind), respond::JSON);
    Err(Error::new(ErrorKind::UnsupportedMediaType, text))
}

fn read_task(body: &[u8]) -> Result<TaskId, Error> {
    let raw = Raw::parse(body).map_err(|fault| {
        let text = format!("the body is not JSON: {fault}: expected {{\"taskId\": \"task_…\"}}");
        Error::new(ErrorKind::Parse, text)
    })?;
    let object = Node::new(raw, &Path::Root).bounded().object()?;
    if let Some(name) = object.unknown(&["taskId"]) {
        return Err(Violation::new(excerpt(name), "this member is not known; send taskId only").into());
    }
    if let Some(name) = object.repeated() {
        return Err(Violation::new(name, "expected once, stands twice").into());
    }
    Ok(TaskId::from(object.need_text("taskId")?))
}

fn started(task: &TaskId, state: TaskState) -> Response {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.key("ok").boolean(true);
        out.text("taskId", task.as_str());
        out.text("state", v03::task::state_name(state));
    });
    respond::json(writer.finish())
}
