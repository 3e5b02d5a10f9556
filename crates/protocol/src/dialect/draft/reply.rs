//! Answers to operations that do not stream: a task, or a webhook.

use crate::{
    Artifact, Message, OperationKind, PushConfigPage, Reply, Task, TaskPage, TaskState, TaskStatus,
    Violation,
    dialect::Style,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

use super::{card, push, task};

/// Writes an answer. Lists and the card answer methods this dialect does not have; they are written all the
/// same, so that every answer has a form.
pub fn encode(writer: &mut Writer, reply: &Reply, style: Style) {
    match reply {
        Reply::SentTask(task) | Reply::Task(task) => task::encode(writer, task, style),
        Reply::SentMessage(message) => task::encode(writer, &completed(message), style),
        Reply::Tasks(page) => encode_page(writer, page, style),
        Reply::PushConfig(config) => push::encode(writer, config),
        Reply::PushConfigs(page) => writer.array(&page.configs, push::encode),
        Reply::Deleted => writer.raw("null"),
        Reply::Card(card) => card::encode(writer, card),
    }
}

/// Reads the answer to an operation of this kind.
pub fn decode(kind: OperationKind, node: Node<'_, '_>) -> Read<Reply> {
    match kind {
        OperationKind::SendMessage => task::decode(node).map(Reply::SentTask),
        OperationKind::GetTask | OperationKind::CancelTask => task::decode(node).map(Reply::Task),
        OperationKind::ListTasks => decode_page(node).map(Reply::Tasks),
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
            Err(Violation::new("result", "expected a stream, not one answer"))
        }
    }
}

/// The task that stands for a bare message: over, with the message as its last word and its only result.
fn completed(message: &Message) -> Task {
    let artifact = Artifact { name: None, ..Artifact::new("message", message.parts.clone()) };
    Task {
        id: message.task_id.clone().unwrap_or_else(|| "".into()),
        context_id: message.context_id.clone().unwrap_or_else(|| "".into()),
        status: TaskStatus { state: TaskState::Completed, message: Some(message.clone()), timestamp: None },
        artifacts: vec![artifact],
        history: Vec::new(),
        metadata: None,
    }
}

fn encode_page(writer: &mut Writer, page: &TaskPage, style: Style) {
    writer.object(|writer| {
        writer.key("tasks").array(&page.tasks, |writer, task| task::encode(writer, task, style));
        writer.text("nextPageToken", page.next_page_token.as_deref().unwrap_or_default());
        writer.key("pageSize").int(i64::from(page.page_size));
        writer.key("totalSize").int(i64::try_from(page.total_size).unwrap_or(i64::MAX));
    });
}

fn decode_page(node: Node<'_, '_>) -> Read<TaskPage> {
    let object = node.object()?;
    let tasks = object.list("tasks", task::decode)?;
    Ok(TaskPage {
        with_artifacts: tasks.iter().any(|task| !task.artifacts.is_empty()),
        tasks,
        next_page_token: object.text("nextPageToken")?,
        page_size: object.count("pageSize")?.unwrap_or_default(),
        total_size: object.long_count("totalSize")?.unwrap_or_default(),
    })
}
