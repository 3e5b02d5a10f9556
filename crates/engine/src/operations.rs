//! The operations of the protocol, one file each.

pub(crate) mod cancel_task;
pub(crate) mod contended_tasks;
pub(crate) mod created_at;
pub(crate) mod get_task;
pub(crate) mod idempotency;
mod list_tasks;
pub(crate) mod operators;
mod push_configs;
mod send_message;
pub(crate) mod submit;
mod subscribe_to_task;
pub(crate) mod task_numbers;

use protocol::{
    ErrorKind, Json, Operation, Reply, Task,
    json::read::{Node, Path},
};

pub(crate) use push_configs::too_many as too_many_webhooks;
pub use send_message::PendingReply;

use crate::{
    engine::{Call, CallResponse, EngineInner},
    error::{Error, Result},
    ids::TaskNo,
};

/// Executes an operation. The futures of rare operations are boxed, so that the future of a send stays small.
pub(crate) async fn dispatch(
    engine: &EngineInner,
    mut call: Call,
    operation: Operation,
) -> Result<CallResponse> {
    let is_send = matches!(operation, Operation::SendMessage(_) | Operation::SendStreamingMessage(_));
    if is_send && engine.runner.is_draining() {
        return Err(Error::later("the server is shutting down; send the message again in a moment"));
    }
    let registered = engine.agent(&mut call)?;
    let reply = match operation {
        Operation::SendMessage(req) => {
            return send_message::send_message(engine, call, &registered, req).await;
        }
        Operation::SendStreamingMessage(req) => {
            return send_message::send_streaming_message(engine, call, &registered, req).await;
        }
        Operation::SubscribeToTask(req) => {
            return Box::pin(subscribe_to_task::subscribe_to_task(engine, call, req))
                .await
                .map(CallResponse::Stream);
        }
        Operation::GetTask(req) => Box::pin(get_task::get_task(engine, call, req)).await?,
        Operation::ListTasks(req) => return Box::pin(list_tasks::list_tasks(engine, call, req)).await,
        Operation::CancelTask(req) => {
            Reply::Task(Box::pin(cancel_task::cancel_task(engine, call, req)).await?)
        }
        Operation::CreatePushConfig(config) => {
            return Box::pin(push_configs::create(engine, call, &registered, config)).await;
        }
        Operation::GetPushConfig(req) => return Box::pin(push_configs::get(engine, call, req)).await,
        Operation::ListPushConfigs(req) => Box::pin(push_configs::list(engine, call, req)).await?,
        Operation::DeletePushConfig(req) => Box::pin(push_configs::delete(engine, call, req)).await?,
        Operation::GetExtendedCard(_) => {
            let text = "this agent has no extended card; its public card says everything";
            return Err(Error::refused(ErrorKind::UnsupportedOperation, text));
        }
    };
    Ok(CallResponse::Reply(reply))
}

/// Shows the place of a task that waits for a slot, in the metadata of the task: 1 is next. It is not stored.
fn show_place(engine: &EngineInner, no: TaskNo, task: &mut Task) {
    if task.status.state.is_settled() {
        return;
    }
    if let Some(place) = engine.runner.place(no) {
        add_own_metadata(task, &format!(r#"{{"queued":{place}}}"#));
    }
}

/// Adds members of a JSON object to `metadata.a2ad` of a task that is shown to a caller. Metadata that would become too
/// large is shown without them.
fn add_own_metadata(task: &mut Task, members: &str) {
    let own = task.metadata.as_ref().and_then(own_metadata);
    let members = Json::parse(members).ok();
    let merged = match (&own, &members) {
        (Some(own), Some(members)) => Json::merge_objects(own, members),
        _ => members,
    };
    let wrapped = merged.and_then(|own| Json::parse(&format!(r#"{{"a2ad":{}}}"#, own.as_str())).ok());
    if let Some(more) = wrapped {
        add_metadata(task, more);
    }
}

/// Adds to the metadata of a task that is shown to a caller, unless it would become too large.
fn add_metadata(task: &mut Task, more: Json) {
    match &task.metadata {
        None => task.metadata = Some(more),
        Some(metadata) => {
            if let Some(merged) = Json::merge_objects(metadata, &more) {
                task.metadata = Some(merged);
            }
        }
    }
}

fn own_metadata(metadata: &Json) -> Option<Json> {
    let object = Node::new(metadata.as_raw(), &Path::Root).object().ok()?;
    object.maybe("a2ad", |node| Ok(node.text().to_owned())).ok()?.and_then(|text| Json::parse(&text).ok())
}

/// Keeps the newest `length` messages of a task's history; all of them for `None`.
fn trim_history(task: &mut Task, length: Option<u32>) {
    if let Some(length) = length {
        let surplus = task.history.len().saturating_sub(length as usize);
        task.history.drain(..surplus);
    }
}
