//! Replies to operations that do not stream.

use prost::Message as _;

use crate::{
    Error, OperationKind, PushConfigPage, Reply, TaskPage,
    grpc::{
        generated::v1 as pb,
        message,
        read::{count, expected, int, list, text},
        streaming_only,
    },
    json::read::Path,
};

use super::{card, message as messages, push, task};

/// Writes a reply.
pub(in crate::grpc) fn encode(reply: &Reply) -> Vec<u8> {
    use pb::send_message_response::Payload;
    let sent = |payload| pb::SendMessageResponse { payload: Some(payload) }.encode_to_vec();
    match reply {
        Reply::SentTask(task) => sent(Payload::Task(task::encode(task))),
        Reply::SentMessage(message) => sent(Payload::Message(messages::encode(message))),
        Reply::Task(task) => task::encode(task).encode_to_vec(),
        Reply::Tasks(page) => pb::ListTasksResponse {
            tasks: page.tasks.iter().map(|task| task::encode_listed(task, page.with_artifacts)).collect(),
            next_page_token: page.next_page_token.clone().unwrap_or_default(),
            page_size: int(page.page_size),
            total_size: int(page.total_size),
        }
        .encode_to_vec(),
        Reply::PushConfig(config) => push::encode(config).encode_to_vec(),
        Reply::PushConfigs(page) => pb::ListTaskPushNotificationConfigsResponse {
            configs: page.configs.iter().map(push::encode).collect(),
            next_page_token: page.next_page_token.clone().unwrap_or_default(),
        }
        .encode_to_vec(),
        Reply::Deleted => Vec::new(),
        Reply::Card(card) => card::encode(card).encode_to_vec(),
    }
}

/// Reads the reply to an operation of this kind.
pub(in crate::grpc) fn decode(kind: OperationKind, body: &[u8]) -> Result<Reply, Error> {
    let path = &Path::Root;
    Ok(match kind {
        OperationKind::SendMessage => decode_sent(body)?,
        OperationKind::GetTask | OperationKind::CancelTask => {
            Reply::Task(task::decode(message(body)?, path)?)
        }
        OperationKind::ListTasks => decode_tasks(body)?,
        OperationKind::CreatePushConfig | OperationKind::GetPushConfig => {
            Reply::PushConfig(push::decode(message(body)?, path)?)
        }
        OperationKind::ListPushConfigs => {
            let page: pb::ListTaskPushNotificationConfigsResponse = message(body)?;
            Reply::PushConfigs(PushConfigPage {
                configs: list(page.configs, path, "configs", push::decode)?,
                next_page_token: text(page.next_page_token),
            })
        }
        OperationKind::DeletePushConfig => Reply::Deleted,
        OperationKind::GetExtendedCard => Reply::Card(Box::new(card::decode(message(body)?)?)),
        OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask => return Err(streaming_only()),
    })
}

fn decode_sent(body: &[u8]) -> Result<Reply, Error> {
    use pb::send_message_response::Payload;
    let sent: pb::SendMessageResponse = message(body)?;
    Ok(match sent.payload {
        Some(Payload::Task(task)) => Reply::SentTask(task::decode(task, &Path::Field(&Path::Root, "task"))?),
        Some(Payload::Message(message)) => {
            Reply::SentMessage(messages::decode(message, &Path::Field(&Path::Root, "message"))?)
        }
        None => return Err(expected(&Path::Root, "a task or a message").into()),
    })
}

fn decode_tasks(body: &[u8]) -> Result<Reply, Error> {
    let path = &Path::Root;
    let page: pb::ListTasksResponse = message(body)?;
    let tasks = list(page.tasks, path, "tasks", task::decode)?;
    Ok(Reply::Tasks(TaskPage {
        // The reply does not state whether artifacts were requested; any that are present are kept.
        with_artifacts: tasks.iter().any(|task| !task.artifacts.is_empty()),
        tasks,
        next_page_token: text(page.next_page_token),
        page_size: count(page.page_size, path, "pageSize")?,
        total_size: count(page.total_size, path, "totalSize")?.into(),
    }))
}
