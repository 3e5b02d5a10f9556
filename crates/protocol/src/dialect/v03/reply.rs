//! Answers to operations that do not stream: the object itself, without a wrapping.

use crate::{
    Event, OperationKind, PushConfigPage, Reply, TaskPage, Violation,
    dialect::Style,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

use super::{card, event, message, push, task};

/// Writes an answer.
pub fn encode(writer: &mut Writer, reply: &Reply, style: Style) {
    match reply {
        Reply::SentTask(task) | Reply::Task(task) => task::encode(writer, task, style),
        Reply::SentMessage(message) => message::encode(writer, message, style),
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
        OperationKind::SendMessage => decode_sent(node),
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

fn decode_sent(node: Node<'_, '_>) -> Read<Reply> {
    match event::decode(node)? {
        Event::Task(task) => Ok(Reply::SentTask(task)),
        Event::Message(message) => Ok(Reply::SentMessage(message)),
        Event::Status(_) | Event::Artifact(_) => Err(node.expected("a task or a message")),
    }
}

fn encode_page(writer: &mut Writer, page: &TaskPage, style: Style) {
    writer.object(|writer| {
        writer.key("tasks").array(&page.tasks, |writer, task| {
            task::encode_listed(writer, task, page.with_artifacts, style);
        });
        writer.text("nextPageToken", page.next_page_token.as_deref().unwrap_or_default());
        writer.key("pageSize").int(i64::from(page.page_size));
        writer.key("totalSize").int(i64::try_from(page.total_size).unwrap_or(i64::MAX));
    });
}

fn decode_page(node: Node<'_, '_>) -> Read<TaskPage> {
    let object = node.object()?;
    let tasks = object.list("tasks", task::decode)?;
    Ok(TaskPage {
        // Whether artifacts were asked for is not said; what is there is kept.
        with_artifacts: tasks.iter().any(|task| !task.artifacts.is_empty()),
        tasks,
        next_page_token: object.text("nextPageToken")?,
        page_size: object.count("pageSize")?.unwrap_or_default(),
        total_size: object.long_count("totalSize")?.unwrap_or_default(),
    })
}
