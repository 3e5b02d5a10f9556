//! The operations of the protocol, one file each.

mod cancel_task;
mod get_task;
mod list_tasks;
mod push_configs;
mod send_message;
mod submit;
mod subscribe_to_task;

use protocol::{ErrorKind, Operation, Task};

use crate::{
    engine::{Call, CallResponse, EngineInner},
    error::{Error, Result},
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
        Operation::ListTasks(req) => Box::pin(list_tasks::list_tasks(engine, call, req)).await?,
        Operation::CancelTask(req) => Box::pin(cancel_task::cancel_task(engine, call, req)).await?,
        Operation::CreatePushConfig(_)
        | Operation::GetPushConfig(_)
        | Operation::ListPushConfigs(_)
        | Operation::DeletePushConfig(_) => return Err(push_configs::not_supported()),
        Operation::GetExtendedCard(_) => {
            let text = "this agent has no extended card; its public card says everything";
            return Err(Error::refused(ErrorKind::UnsupportedOperation, text));
        }
    };
    Ok(CallResponse::Reply(reply))
}

/// Keeps the newest `length` messages of a task's history; all of them for `None`.
fn trim_history(task: &mut Task, length: Option<u32>) {
    if let Some(length) = length {
        let surplus = task.history.len().saturating_sub(length as usize);
        task.history.drain(..surplus);
    }
}
