//! Replies to operations that do not stream: the object itself, without a wrapper.

use crate::{
    Event, OperationKind, PushConfigPage, Reply, Violation,
    dialect::{Style, page},
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

use super::{card, event, message, push, task};

/// Writes a reply.
pub fn encode(writer: &mut Writer, reply: &Reply, style: Style) {
    match reply {
        Reply::SentTask(task) | Reply::Task(task) => task::encode(writer, task, style),
        Reply::SentMessage(message) => message::encode(writer, message, style),
        Reply::Tasks(tasks) => page::encode(writer, tasks, |writer, task| {
            task::encode_listed(writer, task, tasks.with_artifacts, style);
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
        OperationKind::SendMessage => decode_sent(node),
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

fn decode_sent(node: Node<'_, '_>) -> Read<Reply> {
    match event::decode(node)? {
        Event::Task(task) => Ok(Reply::SentTask(task)),
        Event::Message(message) => Ok(Reply::SentMessage(message)),
        Event::Status(_) | Event::Artifact(_) => Err(node.expected("a task or a message")),
    }
}
