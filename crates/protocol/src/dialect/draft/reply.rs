//! Replies to operations that do not stream: a task or a webhook.

use crate::{
    Artifact, Message, OperationKind, PushConfigPage, Reply, Task, TaskState, TaskStatus, Violation,
    dialect::{Style, page},
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

use super::{card, push, task};

/// Writes a reply. Lists and cards belong to methods this dialect does not have; they are written anyway, so
/// that every reply has a form.
pub fn encode(writer: &mut Writer, reply: &Reply, style: Style) {
    match reply {
        Reply::SentTask(task) | Reply::Task(task) => task::encode(writer, task, style),
        Reply::SentMessage(message) => task::encode(writer, &completed(message), style),
        Reply::Tasks(tasks) => page::encode(writer, tasks, |writer, task| {
            task::encode(writer, task, style);
        }),
        Reply::PushConfig(config) => push::encode(writer, config),
        Reply::PushConfigs(page) => writer.array(&page.configs, push::encode),
        Reply::Deleted => writer.raw("null"),
        Reply::Card(card) => card::encode(writer, card),
    }
}

/// Reads the reply to an operation of this kind.
pub fn decode(kind: OperationKind, node: Node<'_, '_>) -> Read<Reply> {
    match kind {
        OperationKind::SendMessage => task::decode(node).map(Reply::SentTask),
        OperationKind::GetTask | OperationKind::CancelTask => task::decode(node).map(Reply::Task),
        OperationKind::ListTasks => page::decode(node, task::decode).map(Reply::Tasks),
        OperationKind::CreatePushConfig | OperationKind::GetPushConfig => {
            push::decode(node).map(Reply::PushConfig)
        }
        OperationKind::ListPushConfigs => {
            let configs = node.list(push::decode)?;
            Ok(Reply::PushConfigs(PushConfigPage { configs, next_page_token: None }))
        }
        OperationKind::DeletePushConfig => Ok(Reply::Deleted),
        OperationKind::GetExtendedCard => card::decode(node).map(|card| Reply::Card(Box::new(card))),
        OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask => {
            Err(Violation::new("result", "expected a stream, not a single response"))
        }
    }
}

/// The task that represents a direct message: completed, with the message as its status message and as its
/// only artifact.
fn completed(message: &Message) -> Task {
    let artifact = Artifact { name: None, ..Artifact::new("message", message.parts.clone()) };
    Task {
        id: message.task_id.clone().unwrap_or_else(|| "".into()),
        context_id: message.context_id.clone().unwrap_or_else(|| "".into()),
        status: TaskStatus { state: TaskState::Completed, message: Some(message.clone()), timestamp: None },
        artifacts: vec![artifact],
        history: Vec::new(),
        metadata: None,
        created_at: None,
    }
}
