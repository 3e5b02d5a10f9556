//! Replies to operations that do not stream.

use crate::{
    Event, OperationKind, PushConfigPage, Reply, Violation,
    dialect::page,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

use super::{card, event, message, push, task};

/// Writes a reply.
pub fn encode(writer: &mut Writer, reply: &Reply) {
    match reply {
        Reply::SentTask(task) => writer.object(|writer| task::encode(writer.key("task"), task)),
        Reply::SentMessage(message) => {
            writer.object(|writer| message::encode(writer.key("message"), message));
        }
        Reply::Task(task) => task::encode(writer, task),
        Reply::Tasks(tasks) => page::encode(writer, tasks, |writer, task| {
            task::encode_listed(writer, task, tasks.with_artifacts);
        }),
        Reply::PushConfig(config) => push::encode(writer, config),
        Reply::PushConfigs(page) => writer.object(|writer| {
            writer.key("configs").array(&page.configs, push::encode);
            writer.maybe_text("nextPageToken", page.next_page_token.as_deref());
        }),
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
            let object = node.object()?;
            Ok(Reply::PushConfigs(PushConfigPage {
                configs: object.list("configs", push::decode)?,
                next_page_token: object.text("nextPageToken")?,
            }))
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
