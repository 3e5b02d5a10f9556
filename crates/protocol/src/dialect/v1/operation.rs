//! Operations: method names and parameters, decoding and encoding.

use crate::{
    CancelTask, ConfigId, ContextId, Error, GetExtendedCard, GetTask, ListTasks, Operation, OperationKind,
    PushConfigQuery, PushConfigRef, SendMessage, SubscribeToTask, TaskId, TaskState,
    dialect::{Dialect, family},
    json::{
        Raw,
        read::{Node, Path, Read},
        write::Writer,
    },
    operation::decode_metadata,
};

use super::{message, push, task};

/// The largest page size a client may request.
pub const MAX_PAGE_SIZE: u32 = 100;

/// The methods of this dialect.
pub const METHODS: [(&str, OperationKind); 11] = [
    ("SendMessage", OperationKind::SendMessage),
    ("SendStreamingMessage", OperationKind::SendStreamingMessage),
    ("GetTask", OperationKind::GetTask),
    ("ListTasks", OperationKind::ListTasks),
    ("CancelTask", OperationKind::CancelTask),
    ("SubscribeToTask", OperationKind::SubscribeToTask),
    ("CreateTaskPushNotificationConfig", OperationKind::CreatePushConfig),
    ("GetTaskPushNotificationConfig", OperationKind::GetPushConfig),
    ("ListTaskPushNotificationConfigs", OperationKind::ListPushConfigs),
    ("DeleteTaskPushNotificationConfig", OperationKind::DeletePushConfig),
    ("GetExtendedAgentCard", OperationKind::GetExtendedCard),
];

/// The method name of an operation.
pub fn method(kind: OperationKind) -> &'static str {
    METHODS.iter().find(|row| row.1 == kind).map_or("", |row| row.0)
}

/// The operation of a method.
pub fn kind(method: &str) -> Option<OperationKind> {
    METHODS.iter().find(|row| row.0 == method).map(|row| row.1)
}

/// Reads a request. Absent parameters equal an empty object.
pub fn decode(method: &str, params: Option<Raw<'_>>) -> Result<Operation, Error> {
    let kind = kind(method).ok_or_else(|| family::unknown(Dialect::V1, method, &METHODS))?;
    let node = Node::new(params.unwrap_or(Raw::EMPTY_OBJECT), &Path::Root).bounded();
    let operation = match kind {
        OperationKind::SendMessage => Operation::SendMessage(decode_send(node)?),
        OperationKind::SendStreamingMessage => Operation::SendStreamingMessage(decode_send(node)?),
        OperationKind::GetTask => Operation::GetTask(decode_get(node)?),
        OperationKind::ListTasks => Operation::ListTasks(decode_list(node)?),
        OperationKind::CancelTask => Operation::CancelTask(decode_cancel(node)?),
        OperationKind::SubscribeToTask => Operation::SubscribeToTask(decode_subscribe(node)?),
        OperationKind::CreatePushConfig => Operation::CreatePushConfig(push::decode_with_task(node)?),
        OperationKind::GetPushConfig => Operation::GetPushConfig(decode_config_ref(node)?),
        OperationKind::ListPushConfigs => Operation::ListPushConfigs(decode_config_query(node)?),
        OperationKind::DeletePushConfig => Operation::DeletePushConfig(decode_config_ref(node)?),
        OperationKind::GetExtendedCard => {
            Operation::GetExtendedCard(GetExtendedCard { tenant: node.object()?.text("tenant")? })
        }
    };
    Ok(operation)
}

/// Writes the parameters of a request.
pub fn encode(writer: &mut Writer, operation: &Operation) {
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => encode_send(writer, req),
        Operation::GetTask(req) => writer.object(|writer| {
            writer.maybe_text("tenant", req.tenant.as_deref());
            writer.text("id", req.id.as_str());
            maybe_count(writer, "historyLength", req.history_length);
        }),
        Operation::ListTasks(req) => encode_list(writer, req),
        Operation::CancelTask(req) => writer.object(|writer| {
            writer.maybe_text("tenant", req.tenant.as_deref());
            writer.text("id", req.id.as_str());
            writer.maybe_json("metadata", req.metadata.as_ref());
        }),
        Operation::SubscribeToTask(req) => writer.object(|writer| {
            writer.maybe_text("tenant", req.tenant.as_deref());
            writer.text("id", req.id.as_str());
        }),
        Operation::CreatePushConfig(config) => push::encode(writer, config),
        Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => writer.object(|writer| {
            writer.maybe_text("tenant", req.tenant.as_deref());
            writer.text("taskId", req.task_id.as_str());
            writer.maybe_text("id", req.id.as_ref().map(AsRef::as_ref));
        }),
        Operation::ListPushConfigs(req) => writer.object(|writer| {
            writer.maybe_text("tenant", req.tenant.as_deref());
            writer.text("taskId", req.task_id.as_str());
            maybe_count(writer, "pageSize", req.page_size);
            writer.maybe_text("pageToken", req.page_token.as_deref());
        }),
        Operation::GetExtendedCard(req) => {
            writer.object(|writer| writer.maybe_text("tenant", req.tenant.as_deref()));
        }
    }
}

pub(super) fn decode_send(node: Node<'_, '_>) -> Read<SendMessage> {
    let object = node.object()?;
    let mut req = SendMessage {
        message: object.need("message", "a message", message::decode)?,
        accepted_output_modes: Vec::new(),
        history_length: None,
        return_immediately: false,
        push: None,
        metadata: decode_metadata(&object)?,
        skill: object.text("skill")?,
        tenant: object.text("tenant")?,
    };
    object.maybe("configuration", |node| {
        let object = node.object()?;
        req.accepted_output_modes = object.texts("acceptedOutputModes")?;
        req.history_length = object.count("historyLength")?;
        req.return_immediately = object.flag("returnImmediately")?.unwrap_or_default();
        req.push = match object.maybe("taskPushNotificationConfig", push::decode)? {
            None => object.maybe("pushNotificationConfig", push::decode)?,
            named => named,
        };
        if req.skill.is_none() {
            req.skill = object.text("skillId")?;
        }
        Ok(())
    })?;
    Ok(req)
}

fn encode_send(writer: &mut Writer, req: &SendMessage) {
    writer.object(|writer| {
        writer.maybe_text("tenant", req.tenant.as_deref());
        message::encode(writer.key("message"), &req.message);
        let configured = req.return_immediately
            || req.history_length.is_some()
            || req.push.is_some()
            || !req.accepted_output_modes.is_empty();
        if configured {
            writer.key("configuration").object(|writer| {
                writer.texts_unless_empty("acceptedOutputModes", &req.accepted_output_modes);
                if let Some(config) = &req.push {
                    push::encode(writer.key("taskPushNotificationConfig"), config);
                }
                maybe_count(writer, "historyLength", req.history_length);
                writer.flag_if_set("returnImmediately", req.return_immediately);
            });
        }
        writer.maybe_json("metadata", req.metadata_with_skill().as_ref());
    });
}

fn decode_get(node: Node<'_, '_>) -> Read<GetTask> {
    let object = node.object()?;
    Ok(GetTask {
        id: object.need_text("id")?.into(),
        history_length: object.count("historyLength")?,
        tenant: object.text("tenant")?,
    })
}

fn decode_list(node: Node<'_, '_>) -> Read<ListTasks> {
    let object = node.object()?;
    Ok(ListTasks {
        context_id: object.text("contextId")?.map(ContextId::from),
        status: object.maybe("status", |node| decode_state_filter(node, task::decode_state))?.flatten(),
        page_size: object.maybe("pageSize", decode_page_size)?,
        page_token: object.text("pageToken")?,
        history_length: object.count("historyLength")?,
        status_timestamp_after: object.maybe("statusTimestampAfter", |node| node.timestamp())?,
        include_artifacts: object.flag("includeArtifacts")?.unwrap_or_default(),
        tenant: object.text("tenant")?,
    })
}

fn encode_list(writer: &mut Writer, req: &ListTasks) {
    writer.object(|writer| {
        writer.maybe_text("tenant", req.tenant.as_deref());
        writer.maybe_text("contextId", req.context_id.as_ref().map(AsRef::as_ref));
        writer.maybe_text("status", req.status.map(task::state_name));
        maybe_count(writer, "pageSize", req.page_size);
        writer.maybe_text("pageToken", req.page_token.as_deref());
        maybe_count(writer, "historyLength", req.history_length);
        if let Some(after) = req.status_timestamp_after {
            writer.text("statusTimestampAfter", &after.to_string());
        }
        writer.flag_if_set("includeArtifacts", req.include_artifacts);
    });
}

/// Reads the state filter of a list. The zero value of the enum means no filter, and so does `UNRECOGNIZED`,
/// which the JavaScript SDK sends for an unset state.
pub(crate) fn decode_state_filter(
    node: Node<'_, '_>,
    read: impl FnOnce(Node<'_, '_>) -> Read<TaskState>,
) -> Read<Option<TaskState>> {
    if node.text() == r#""UNRECOGNIZED""# {
        return Ok(None);
    }
    Ok(Some(read(node)?).filter(|state| *state != TaskState::Unspecified))
}

/// Reads the page size.
pub(crate) fn decode_page_size(node: Node<'_, '_>) -> Read<u32> {
    let size = node.int32()?;
    match u32::try_from(size) {
        Ok(size @ 1..=MAX_PAGE_SIZE) => Ok(size),
        _ => Err(node.expected(format_args!("an integer from 1 to {MAX_PAGE_SIZE}"))),
    }
}

fn decode_cancel(node: Node<'_, '_>) -> Read<CancelTask> {
    let object = node.object()?;
    Ok(CancelTask {
        id: object.need_text("id")?.into(),
        metadata: object.json_object("metadata")?,
        tenant: object.text("tenant")?,
    })
}

fn decode_subscribe(node: Node<'_, '_>) -> Read<SubscribeToTask> {
    let object = node.object()?;
    Ok(SubscribeToTask { id: object.need_text("id")?.into(), tenant: object.text("tenant")? })
}

fn decode_config_ref(node: Node<'_, '_>) -> Read<PushConfigRef> {
    let object = node.object()?;
    Ok(PushConfigRef {
        task_id: TaskId::from(object.need_text("taskId")?),
        id: Some(ConfigId::from(object.need_text("id")?)),
        tenant: object.text("tenant")?,
    })
}

fn decode_config_query(node: Node<'_, '_>) -> Read<PushConfigQuery> {
    let object = node.object()?;
    Ok(PushConfigQuery {
        task_id: TaskId::from(object.need_text("taskId")?),
        page_size: object.count("pageSize")?,
        page_token: object.text("pageToken")?,
        tenant: object.text("tenant")?,
    })
}

fn maybe_count(writer: &mut Writer, name: &str, count: Option<u32>) {
    if let Some(count) = count {
        writer.key(name).int(i64::from(count));
    }
}
