//! Replies to operations that do not stream.

use prost::Message as _;

use crate::{
    Error, OperationKind, PushConfigPage, Reply,
    grpc::{
        Service,
        generated::v03 as pb,
        message,
        read::{expected, list, text},
        streaming_only,
    },
    json::read::Path,
};

use super::{card, message as messages, push, task};

/// Writes a reply; empty for listing tasks, which this version does not have.
pub(in crate::grpc) fn encode(reply: &Reply) -> Vec<u8> {
    use pb::send_message_response::Payload;
    let sent = |payload| pb::SendMessageResponse { payload: Some(payload) }.encode_to_vec();
    match reply {
        Reply::SentTask(task) => sent(Payload::Task(task::encode(task))),
        Reply::SentMessage(message) => sent(Payload::Msg(messages::encode(message))),
        Reply::Task(task) => task::encode(task).encode_to_vec(),
        Reply::PushConfig(config) => push::encode(config).encode_to_vec(),
        Reply::PushConfigs(page) => pb::ListTaskPushNotificationConfigResponse {
            configs: page.configs.iter().map(push::encode).collect(),
            next_page_token: page.next_page_token.clone().unwrap_or_default(),
        }
        .encode_to_vec(),
        Reply::Card(card) => card::encode(card).encode_to_vec(),
        Reply::Deleted | Reply::Tasks(_) => Vec::new(),
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
        OperationKind::CreatePushConfig | OperationKind::GetPushConfig => {
            Reply::PushConfig(push::decode(message(body)?, path)?)
        }
        OperationKind::ListPushConfigs => {
            let page: pb::ListTaskPushNotificationConfigResponse = message(body)?;
            Reply::PushConfigs(PushConfigPage {
                configs: list(page.configs, path, "configs", push::decode)?,
                next_page_token: text(page.next_page_token),
            })
        }
        OperationKind::DeletePushConfig => Reply::Deleted,
        OperationKind::GetExtendedCard => Reply::Card(Box::new(card::decode(message(body)?)?)),
        OperationKind::ListTasks => return Err(Service::V03.unsupported(kind)),
        OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask => return Err(streaming_only()),
    })
}

fn decode_sent(body: &[u8]) -> Result<Reply, Error> {
    use pb::send_message_response::Payload;
    let sent: pb::SendMessageResponse = message(body)?;
    Ok(match sent.payload {
        Some(Payload::Task(task)) => Reply::SentTask(task::decode(task, &Path::Field(&Path::Root, "task"))?),
        Some(Payload::Msg(message)) => {
            Reply::SentMessage(messages::decode(message, &Path::Field(&Path::Root, "message"))?)
        }
        None => return Err(expected(&Path::Root, "a task or a message").into()),
    })
}
