//! Requests, decoding and encoding.

use prost::Message as _;

use crate::{
    CancelTask, ConfigId, ContextId, Error, GetExtendedCard, GetTask, ListTasks, Operation, OperationKind,
    PushConfigQuery, PushConfigRef, SendMessage, SubscribeToTask, TaskId, TaskState,
    dialect::v1::{message::MAX_PARTS, operation::MAX_PAGE_SIZE},
    grpc::{
        generated::v1 as pb,
        message,
        read::{count, expected, int, maybe, need, need_text, object, state, text, time, timestamp},
        values,
        wire::{self, Bound},
    },
    json::read::{Path, Read},
};

use super::{message as messages, push};

/// Size limits of a send.
const SEND: &[Bound] = &[
    Bound::Nested {
        field: 2,
        name: "message",
        bounds: &[
            Bound::Each { field: 5, name: "parts", max: MAX_PARTS, things: "parts", bounds: PART },
            Bound::Object { field: 6, name: "metadata" },
            Bound::Texts { field: 7, name: "extensions", things: "strings" },
            Bound::Texts { field: 8, name: "referenceTaskIds", things: "ids" },
        ],
    },
    Bound::Nested {
        field: 3,
        name: "configuration",
        bounds: &[
            Bound::Texts { field: 1, name: "acceptedOutputModes", things: "strings" },
            Bound::Nested { field: 2, name: "taskPushNotificationConfig", bounds: CONFIG },
        ],
    },
    Bound::Object { field: 4, name: "metadata" },
];
const PART: &[Bound] = &[
    Bound::Value { field: 4, name: "data" },
    Bound::Object { field: 5, name: "metadata" },
    Bound::Text { field: 6, name: "filename" },
    Bound::Text { field: 7, name: "mediaType" },
];
/// Size limits of a cancel.
const CANCEL: &[Bound] = &[Bound::Object { field: 3, name: "metadata" }];
/// Size limits of registering a webhook.
const CONFIG: &[Bound] = &[
    Bound::Text { field: 1, name: "tenant" },
    Bound::Text { field: 2, name: "id" },
    Bound::Text { field: 3, name: "taskId" },
    Bound::Text { field: 4, name: "url" },
    Bound::Text { field: 5, name: "token" },
    Bound::Nested {
        field: 6,
        name: "authentication",
        bounds: &[Bound::Text { field: 1, name: "scheme" }, Bound::Text { field: 2, name: "credentials" }],
    },
];
/// Size limits of listing webhooks.
const CONFIGS: &[Bound] = &[Bound::Text { field: 3, name: "pageToken" }];

/// The tenant named in a request. Invalid bytes after it are ignored.
pub(in crate::grpc) fn tenant(kind: OperationKind, body: &[u8]) -> Option<&str> {
    let field = if kind == OperationKind::ListPushConfigs { 4 } else { 1 };
    let tenant = wire::Fields::new(body).find_bytes(field)?;
    std::str::from_utf8(tenant).ok()
}

/// Reads a request.
pub(in crate::grpc) fn decode(kind: OperationKind, body: &[u8]) -> Result<Operation, Error> {
    Ok(match kind {
        OperationKind::SendMessage => Operation::SendMessage(decode_send(body)?),
        OperationKind::SendStreamingMessage => Operation::SendStreamingMessage(decode_send(body)?),
        OperationKind::GetTask => Operation::GetTask(decode_get(body)?),
        OperationKind::ListTasks => Operation::ListTasks(decode_list(message(body)?)?),
        OperationKind::CancelTask => Operation::CancelTask(decode_cancel(body)?),
        OperationKind::SubscribeToTask => Operation::SubscribeToTask(decode_subscribe(body)?),
        OperationKind::CreatePushConfig => {
            wire::check(body, CONFIG)?;
            let config: pb::TaskPushNotificationConfig = message(body)?;
            let task = need_text(config.task_id, &Path::Root, "taskId")?;
            let config = pb::TaskPushNotificationConfig { task_id: task, ..config };
            Operation::CreatePushConfig(push::decode(config, &Path::Root)?)
        }
        OperationKind::GetPushConfig => {
            let req: pb::GetTaskPushNotificationConfigRequest = message(body)?;
            Operation::GetPushConfig(config_ref(req.task_id, req.id, req.tenant)?)
        }
        OperationKind::ListPushConfigs => Operation::ListPushConfigs(decode_config_query(body)?),
        OperationKind::DeletePushConfig => {
            let req: pb::DeleteTaskPushNotificationConfigRequest = message(body)?;
            Operation::DeletePushConfig(config_ref(req.task_id, req.id, req.tenant)?)
        }
        OperationKind::GetExtendedCard => {
            let req: pb::GetExtendedAgentCardRequest = message(body)?;
            Operation::GetExtendedCard(GetExtendedCard { tenant: text(req.tenant) })
        }
    })
}

/// Writes a request.
pub(in crate::grpc) fn encode(operation: &Operation) -> Vec<u8> {
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    let config_id = |id: &Option<ConfigId>| id.as_ref().map(ConfigId::to_string).unwrap_or_default();
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => {
            encode_send(req).encode_to_vec()
        }
        Operation::GetTask(req) => pb::GetTaskRequest {
            tenant: or_empty(&req.tenant),
            id: req.id.to_string(),
            history_length: req.history_length.map(int),
        }
        .encode_to_vec(),
        Operation::ListTasks(req) => encode_list(req).encode_to_vec(),
        Operation::CancelTask(req) => pb::CancelTaskRequest {
            tenant: or_empty(&req.tenant),
            id: req.id.to_string(),
            metadata: req.metadata.as_ref().map(values::pack_object),
        }
        .encode_to_vec(),
        Operation::SubscribeToTask(req) => {
            pb::SubscribeToTaskRequest { tenant: or_empty(&req.tenant), id: req.id.to_string() }
                .encode_to_vec()
        }
        Operation::CreatePushConfig(config) => push::encode(config).encode_to_vec(),
        Operation::GetPushConfig(req) => pb::GetTaskPushNotificationConfigRequest {
            tenant: or_empty(&req.tenant),
            task_id: req.task_id.to_string(),
            id: config_id(&req.id),
        }
        .encode_to_vec(),
        Operation::DeletePushConfig(req) => pb::DeleteTaskPushNotificationConfigRequest {
            tenant: or_empty(&req.tenant),
            task_id: req.task_id.to_string(),
            id: config_id(&req.id),
        }
        .encode_to_vec(),
        Operation::ListPushConfigs(req) => pb::ListTaskPushNotificationConfigsRequest {
            task_id: req.task_id.to_string(),
            page_size: req.page_size.map(int).unwrap_or_default(),
            page_token: or_empty(&req.page_token),
            tenant: or_empty(&req.tenant),
        }
        .encode_to_vec(),
        Operation::GetExtendedCard(req) => {
            pb::GetExtendedAgentCardRequest { tenant: or_empty(&req.tenant) }.encode_to_vec()
        }
    }
}

fn decode_send(body: &[u8]) -> Result<SendMessage, Error> {
    wire::check(body, SEND)?;
    let req: pb::SendMessageRequest = message(body)?;
    let path = &Path::Root;
    let mut send = SendMessage {
        metadata: object(req.metadata, path, "metadata")?,
        tenant: text(req.tenant),
        ..SendMessage::new(need(req.message, path, "message", "a message", messages::decode)?)
    };
    maybe(req.configuration, path, "configuration", |configuration, path| {
        send.accepted_output_modes = configuration.accepted_output_modes;
        send.history_length = history_length(configuration.history_length, path)?;
        send.return_immediately = configuration.return_immediately;
        let config = configuration.task_push_notification_config;
        send.push = maybe(config, path, "taskPushNotificationConfig", push::decode)?;
        Ok(())
    })?;
    Ok(send)
}

fn encode_send(req: &SendMessage) -> pb::SendMessageRequest {
    let configuration = pb::SendMessageConfiguration {
        accepted_output_modes: req.accepted_output_modes.clone(),
        task_push_notification_config: req.push.as_ref().map(push::encode),
        history_length: req.history_length.map(int),
        return_immediately: req.return_immediately,
    };
    let configured = configuration != pb::SendMessageConfiguration::default();
    pb::SendMessageRequest {
        tenant: req.tenant.clone().unwrap_or_default(),
        message: Some(messages::encode(&req.message)),
        configuration: configured.then_some(configuration),
        // 1.0 has no field for the skill.
        metadata: req.metadata_with_skill().as_ref().map(values::pack_object),
    }
}

fn decode_get(body: &[u8]) -> Result<GetTask, Error> {
    let req: pb::GetTaskRequest = message(body)?;
    Ok(GetTask {
        id: need_text(req.id, &Path::Root, "id")?.into(),
        history_length: history_length(req.history_length, &Path::Root)?,
        tenant: text(req.tenant),
    })
}

fn decode_list(req: pb::ListTasksRequest) -> Read<ListTasks> {
    let path = &Path::Root;
    Ok(ListTasks {
        context_id: text(req.context_id).map(ContextId::from),
        // The zero value of the enum means no filter.
        status: Some(state(req.status, path, "status")?).filter(|state| *state != TaskState::Unspecified),
        page_size: maybe(req.page_size, path, "pageSize", |size, path| match u32::try_from(size) {
            Ok(size @ 1..=MAX_PAGE_SIZE) => Ok(size),
            _ => Err(expected(path, &format!("an integer from 1 to {MAX_PAGE_SIZE}"))),
        })?,
        page_token: text(req.page_token),
        history_length: history_length(req.history_length, path)?,
        status_timestamp_after: maybe(req.status_timestamp_after, path, "statusTimestampAfter", timestamp)?,
        include_artifacts: req.include_artifacts.unwrap_or_default(),
        tenant: text(req.tenant),
    })
}

fn encode_list(req: &ListTasks) -> pb::ListTasksRequest {
    pb::ListTasksRequest {
        tenant: req.tenant.clone().unwrap_or_default(),
        context_id: req.context_id.as_ref().map(ContextId::to_string).unwrap_or_default(),
        status: req.status.map(|state| i32::from(state.number())).unwrap_or_default(),
        page_size: req.page_size.map(int),
        page_token: req.page_token.clone().unwrap_or_default(),
        history_length: req.history_length.map(int),
        status_timestamp_after: req.status_timestamp_after.map(time),
        include_artifacts: req.include_artifacts.then_some(true),
    }
}

fn decode_cancel(body: &[u8]) -> Result<CancelTask, Error> {
    wire::check(body, CANCEL)?;
    let req: pb::CancelTaskRequest = message(body)?;
    Ok(CancelTask {
        id: need_text(req.id, &Path::Root, "id")?.into(),
        metadata: object(req.metadata, &Path::Root, "metadata")?,
        tenant: text(req.tenant),
    })
}

fn decode_subscribe(body: &[u8]) -> Result<SubscribeToTask, Error> {
    let req: pb::SubscribeToTaskRequest = message(body)?;
    Ok(SubscribeToTask { id: need_text(req.id, &Path::Root, "id")?.into(), tenant: text(req.tenant) })
}

fn config_ref(task: String, id: String, tenant: String) -> Read<PushConfigRef> {
    Ok(PushConfigRef {
        task_id: TaskId::from(need_text(task, &Path::Root, "taskId")?),
        id: Some(ConfigId::from(need_text(id, &Path::Root, "id")?)),
        tenant: text(tenant),
    })
}

fn decode_config_query(body: &[u8]) -> Result<PushConfigQuery, Error> {
    wire::check(body, CONFIGS)?;
    let req: pb::ListTaskPushNotificationConfigsRequest = message(body)?;
    Ok(PushConfigQuery {
        task_id: TaskId::from(need_text(req.task_id, &Path::Root, "taskId")?),
        // Zero means unspecified.
        page_size: Some(count(req.page_size, &Path::Root, "pageSize")?).filter(|size| *size > 0),
        page_token: text(req.page_token),
        tenant: text(req.tenant),
    })
}

fn history_length(length: Option<i32>, path: &Path<'_>) -> Read<Option<u32>> {
    length.map(|length| count(length, path, "historyLength")).transpose()
}
