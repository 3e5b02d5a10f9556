//! Requests, decoding and encoding.

use prost::Message as _;

use crate::{
    CancelTask, Error, GetExtendedCard, GetTask, Operation, OperationKind, PushConfigQuery, PushConfigRef,
    SendMessage, SubscribeToTask, Violation,
    dialect::v03_proto::{message::MAX_PARTS, operation::at_least_one},
    grpc::{
        Service,
        generated::v03 as pb,
        message,
        read::{count, int, maybe, need, object, text},
        values,
        wire::{self, Bound},
    },
    json::read::{Path, Read},
};

use super::{message as messages, name, push};

/// Size limits of a send.
const SEND: &[Bound] = &[
    Bound::Nested {
        field: 1,
        name: "message",
        bounds: &[
            Bound::Each { field: 5, name: "content", max: MAX_PARTS, things: "parts", bounds: PART },
            Bound::Object { field: 6, name: "metadata" },
            Bound::Texts { field: 7, name: "extensions", things: "strings" },
        ],
    },
    Bound::Nested {
        field: 2,
        name: "configuration",
        bounds: &[
            Bound::Texts { field: 1, name: "acceptedOutputModes", things: "strings" },
            Bound::Nested { field: 2, name: "pushNotification", bounds: CONFIG },
        ],
    },
    Bound::Object { field: 3, name: "metadata" },
];
const PART: &[Bound] = &[
    Bound::Nested {
        field: 2,
        name: "file",
        bounds: &[Bound::Text { field: 3, name: "mimeType" }, Bound::Text { field: 4, name: "name" }],
    },
    Bound::Nested { field: 3, name: "data", bounds: &[Bound::Object { field: 1, name: "data" }] },
    Bound::Object { field: 4, name: "metadata" },
];
/// Size limits of registering a webhook.
const CREATE: &[Bound] = &[
    Bound::Text { field: 2, name: "configId" },
    Bound::Nested {
        field: 3,
        name: "config",
        bounds: &[
            Bound::Text { field: 1, name: "name" },
            Bound::Nested { field: 2, name: "pushNotificationConfig", bounds: CONFIG },
        ],
    },
];
const CONFIG: &[Bound] = &[
    Bound::Text { field: 1, name: "id" },
    Bound::Text { field: 2, name: "url" },
    Bound::Text { field: 3, name: "token" },
    Bound::Nested {
        field: 4,
        name: "authentication",
        bounds: &[
            Bound::Texts { field: 1, name: "schemes", things: "strings" },
            Bound::Text { field: 2, name: "credentials" },
        ],
    },
];
/// Size limits of listing webhooks.
const CONFIGS: &[Bound] = &[Bound::Text { field: 3, name: "pageToken" }];

/// Reads a request.
pub(in crate::grpc) fn decode(kind: OperationKind, body: &[u8]) -> Result<Operation, Error> {
    Ok(match kind {
        OperationKind::SendMessage => Operation::SendMessage(decode_send(body)?),
        OperationKind::SendStreamingMessage => Operation::SendStreamingMessage(decode_send(body)?),
        OperationKind::GetTask => {
            let req: pb::GetTaskRequest = message(body)?;
            Operation::GetTask(GetTask {
                id: name::task(&req.name, "name")?,
                history_length: history_length(req.history_length, &Path::Root)?,
                tenant: None,
            })
        }
        OperationKind::CancelTask => {
            let req: pb::CancelTaskRequest = message(body)?;
            let id = name::task(&req.name, "name")?;
            Operation::CancelTask(CancelTask { id, metadata: None, tenant: None })
        }
        OperationKind::SubscribeToTask => {
            let req: pb::TaskSubscriptionRequest = message(body)?;
            let id = name::task(&req.name, "name")?;
            Operation::SubscribeToTask(SubscribeToTask { id, tenant: None })
        }
        OperationKind::CreatePushConfig => {
            wire::check(body, CREATE)?;
            Operation::CreatePushConfig(push::decode_created(message(body)?)?)
        }
        OperationKind::GetPushConfig => {
            let req: pb::GetTaskPushNotificationConfigRequest = message(body)?;
            Operation::GetPushConfig(config_ref(&req.name)?)
        }
        OperationKind::ListPushConfigs => {
            wire::check(body, CONFIGS)?;
            let req: pb::ListTaskPushNotificationConfigRequest = message(body)?;
            Operation::ListPushConfigs(PushConfigQuery {
                task_id: name::task(&req.parent, "parent")?,
                // Zero means unspecified.
                page_size: Some(count(req.page_size, &Path::Root, "pageSize")?).filter(|size| *size > 0),
                page_token: text(req.page_token),
                tenant: None,
            })
        }
        OperationKind::DeletePushConfig => {
            let req: pb::DeleteTaskPushNotificationConfigRequest = message(body)?;
            Operation::DeletePushConfig(config_ref(&req.name)?)
        }
        OperationKind::GetExtendedCard => {
            message::<pb::GetAgentCardRequest>(body)?;
            Operation::GetExtendedCard(GetExtendedCard::default())
        }
        OperationKind::ListTasks => return Err(Service::V03.unsupported(kind)),
    })
}

/// Writes a request; empty for listing tasks, which this version does not have.
pub(in crate::grpc) fn encode(operation: &Operation) -> Vec<u8> {
    let config_name = |req: &PushConfigRef| name::of_config(&req.task_id, req.id.as_ref());
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => {
            encode_send(req).encode_to_vec()
        }
        Operation::GetTask(req) => pb::GetTaskRequest {
            name: name::of_task(&req.id),
            history_length: at_least_one(req.history_length).map(int).unwrap_or_default(),
        }
        .encode_to_vec(),
        Operation::CancelTask(req) => pb::CancelTaskRequest { name: name::of_task(&req.id) }.encode_to_vec(),
        Operation::SubscribeToTask(req) => {
            pb::TaskSubscriptionRequest { name: name::of_task(&req.id) }.encode_to_vec()
        }
        Operation::CreatePushConfig(config) => push::encode_created(config).encode_to_vec(),
        Operation::GetPushConfig(req) => {
            pb::GetTaskPushNotificationConfigRequest { name: config_name(req) }.encode_to_vec()
        }
        Operation::ListPushConfigs(req) => pb::ListTaskPushNotificationConfigRequest {
            parent: name::of_task(&req.task_id),
            page_size: req.page_size.map(int).unwrap_or_default(),
            page_token: req.page_token.clone().unwrap_or_default(),
        }
        .encode_to_vec(),
        Operation::DeletePushConfig(req) => {
            pb::DeleteTaskPushNotificationConfigRequest { name: config_name(req) }.encode_to_vec()
        }
        Operation::GetExtendedCard(_) | Operation::ListTasks(_) => Vec::new(),
    }
}

/// The request's name of a field, given its 1.0 name: ids are part of resource names.
pub(in crate::grpc) fn field(kind: OperationKind, field: &'static str) -> &'static str {
    match (kind, field) {
        (OperationKind::CreatePushConfig, "id") => "configId",
        (OperationKind::CreatePushConfig | OperationKind::ListPushConfigs, "taskId") => "parent",
        (_, "id" | "taskId") => "name",
        (_, field) => field,
    }
}

fn decode_send(body: &[u8]) -> Result<SendMessage, Error> {
    wire::check(body, SEND)?;
    let req: pb::SendMessageRequest = message(body)?;
    let path = &Path::Root;
    let mut send = SendMessage {
        metadata: object(req.metadata, path, "metadata")?,
        ..SendMessage::new(need(req.request, path, "message", "a message", messages::decode)?)
    };
    if send.message.id.as_str().is_empty() {
        return Err(Violation::new("message.messageId", "expected a non-empty string, found nothing").into());
    }
    maybe(req.configuration, path, "configuration", |configuration, path| {
        send.accepted_output_modes = configuration.accepted_output_modes;
        send.history_length = history_length(configuration.history_length, path)?;
        // An unset flag is false: a configuration without it does not wait, a request without a configuration
        // waits.
        send.return_immediately = !configuration.blocking;
        send.push = maybe(configuration.push_notification, path, "pushNotification", push::decode_bare)?;
        Ok(())
    })?;
    Ok(send)
}

fn encode_send(req: &SendMessage) -> pb::SendMessageRequest {
    pb::SendMessageRequest {
        request: Some(messages::encode(&req.message)),
        // Always written: a configuration without `blocking` does not wait, and servers differ if there is no
        // configuration.
        configuration: Some(pb::SendMessageConfiguration {
            accepted_output_modes: req.accepted_output_modes.clone(),
            push_notification: req.push.as_ref().map(push::encode_bare),
            history_length: at_least_one(req.history_length).map(int).unwrap_or_default(),
            blocking: !req.return_immediately,
        }),
        metadata: req.metadata_with_skill().as_ref().map(values::pack_object),
    }
}

/// In this version zero is the same as unspecified: the whole history.
fn history_length(length: i32, path: &Path<'_>) -> Read<Option<u32>> {
    Ok(Some(count(length, path, "historyLength")?).filter(|length| *length > 0))
}

fn config_ref(name: &str) -> Read<PushConfigRef> {
    let (task_id, id) = name::config(name, "name")?;
    Ok(PushConfigRef { task_id, id: Some(id), tenant: None })
}
