//! Operations: method names and parameters, decoding and encoding.

use crate::{
    CancelTask, ContextId, Error, GetExtendedCard, GetTask, ListTasks, Operation, OperationKind,
    PushConfigQuery, PushConfigRef, SendMessage, SubscribeToTask, Violation,
    dialect::{
        Dialect, Leniency, Style, family,
        legacy::{
            enums,
            operation::{self, maybe_count},
            time,
        },
        v1::operation::{MAX_PAGE_SIZE, decode_state_filter},
    },
    json::{
        Raw,
        read::{Node, Object, Path, Read},
        write::Writer,
    },
    operation::decode_metadata,
};

use super::{message, push};

/// The methods of this dialect.
pub const METHODS: [(&str, OperationKind); 10] = [
    ("message/send", OperationKind::SendMessage),
    ("message/stream", OperationKind::SendStreamingMessage),
    ("tasks/get", OperationKind::GetTask),
    ("tasks/cancel", OperationKind::CancelTask),
    ("tasks/resubscribe", OperationKind::SubscribeToTask),
    ("tasks/pushNotificationConfig/set", OperationKind::CreatePushConfig),
    ("tasks/pushNotificationConfig/get", OperationKind::GetPushConfig),
    ("tasks/pushNotificationConfig/list", OperationKind::ListPushConfigs),
    ("tasks/pushNotificationConfig/delete", OperationKind::DeletePushConfig),
    ("agent/getAuthenticatedExtendedCard", OperationKind::GetExtendedCard),
];

/// Methods that are served although no release defines them. The client does not call them and no error text
/// suggests them.
pub const EXTRA_METHODS: [(&str, OperationKind); 1] = [("tasks/list", OperationKind::ListTasks)];

/// The method name of an operation, where this dialect has one.
pub fn method(kind: OperationKind) -> Option<&'static str> {
    operation::method(&METHODS, kind)
}

/// Whether this dialect has a method.
pub fn has(method: &str) -> bool {
    kind(method).is_some()
}

/// Reads a request. Absent parameters equal an empty object.
pub fn decode(method: &str, params: Option<Raw<'_>>) -> Result<Operation, Error> {
    decode_with(method, params, Leniency::default())
}

/// Reads a request with a profile's relaxed rules.
pub fn decode_with(method: &str, params: Option<Raw<'_>>, leniency: Leniency) -> Result<Operation, Error> {
    let kind = kind(method).ok_or_else(|| family::unknown(Dialect::V03, method, &METHODS))?;
    let node = Node::new(params.unwrap_or(Raw::EMPTY_OBJECT), &Path::Root).bounded();
    let object = node.object()?;
    let operation = match kind {
        OperationKind::SendMessage => Operation::SendMessage(decode_send(&object, leniency)?),
        OperationKind::SendStreamingMessage => {
            Operation::SendStreamingMessage(decode_send(&object, leniency)?)
        }
        OperationKind::GetTask => Operation::GetTask(GetTask {
            id: object.need_text("id")?.into(),
            history_length: decode_history_length(&object)?,
            tenant: None,
        }),
        OperationKind::ListTasks => Operation::ListTasks(decode_list(&object)?),
        OperationKind::CancelTask => Operation::CancelTask(CancelTask {
            id: object.need_text("id")?.into(),
            metadata: object.json_object("metadata")?,
            tenant: None,
        }),
        OperationKind::SubscribeToTask => {
            Operation::SubscribeToTask(SubscribeToTask { id: object.need_text("id")?.into(), tenant: None })
        }
        OperationKind::CreatePushConfig => Operation::CreatePushConfig(push::decode(node)?),
        OperationKind::GetPushConfig => Operation::GetPushConfig(decode_config_ref(&object)?),
        OperationKind::ListPushConfigs => Operation::ListPushConfigs(PushConfigQuery {
            task_id: object.need_text("id")?.into(),
            page_size: None,
            page_token: None,
            tenant: None,
        }),
        OperationKind::DeletePushConfig => {
            let req = decode_config_ref(&object)?;
            object.need_text(CONFIG_ID)?;
            Operation::DeletePushConfig(req)
        }
        OperationKind::GetExtendedCard => Operation::GetExtendedCard(GetExtendedCard::default()),
    };
    Ok(operation)
}

/// Writes the parameters of a request.
pub fn encode(writer: &mut Writer, operation: &Operation) {
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => encode_send(writer, req),
        Operation::CreatePushConfig(config) => push::encode(writer, config),
        _ => writer.object(|writer| encode_members(writer, operation)),
    }
}

fn encode_members(writer: &mut Writer, operation: &Operation) {
    match operation {
        Operation::GetTask(req) => {
            writer.text("id", req.id.as_str());
            encode_history_length(writer, req.history_length);
        }
        Operation::ListTasks(req) => encode_list(writer, req),
        Operation::CancelTask(req) => {
            writer.text("id", req.id.as_str());
            writer.maybe_json("metadata", req.metadata.as_ref());
        }
        Operation::SubscribeToTask(req) => writer.text("id", req.id.as_str()),
        Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => {
            writer.text("id", req.task_id.as_str());
            writer.maybe_text(CONFIG_ID, req.id.as_ref().map(AsRef::as_ref));
        }
        Operation::ListPushConfigs(req) => writer.text("id", req.task_id.as_str()),
        Operation::SendMessage(_)
        | Operation::SendStreamingMessage(_)
        | Operation::CreatePushConfig(_)
        | Operation::GetExtendedCard(_) => {}
    }
}

const CONFIG_ID: &str = "pushNotificationConfigId";

/// The operation of a method.
pub fn kind(method: &str) -> Option<OperationKind> {
    operation::kind(&METHODS, method).or_else(|| operation::kind(&EXTRA_METHODS, method))
}

fn decode_send(object: &Object<'_, '_>, leniency: Leniency) -> Read<SendMessage> {
    let mut req = SendMessage {
        metadata: decode_metadata(object)?,
        skill: object.text("skill")?,
        return_immediately: object.flag("async")?.unwrap_or_default(),
        ..SendMessage::new(object.need("message", "a message", message::decode)?)
    };
    if req.message.id.as_str().is_empty() && !leniency.message_id_optional {
        return Err(Violation::new("message.messageId", "expected a non-empty string, found nothing"));
    }
    if req.message.context_id.is_none() {
        req.message.context_id = object.text("contextId")?.map(ContextId::from);
    }
    object.maybe("configuration", |node| {
        let object = node.object()?;
        req.accepted_output_modes = object.texts("acceptedOutputModes")?;
        req.history_length = decode_history_length(&object)?;
        req.return_immediately |= object.flag("blocking")? == Some(false);
        req.push = object.maybe("pushNotificationConfig", push::decode_config)?;
        if req.skill.is_none() {
            req.skill = object.text("skillId")?;
        }
        Ok(())
    })?;
    Ok(req)
}

/// The configuration is always written: servers before 0.2.6 require the modes, and servers differ in the
/// meaning of an absent `blocking`.
fn encode_send(writer: &mut Writer, req: &SendMessage) {
    writer.object(|writer| {
        message::encode(writer.key("message"), &req.message, Style::default());
        writer.key("configuration").object(|writer| {
            writer.texts("acceptedOutputModes", &req.accepted_output_modes);
            writer.key("blocking").boolean(!req.return_immediately);
            encode_history_length(writer, req.history_length);
            if let Some(config) = &req.push {
                push::encode_config(writer.key("pushNotificationConfig"), config);
            }
        });
        writer.maybe_json("metadata", req.metadata_with_skill().as_ref());
    });
}

/// In this version zero means unspecified.
fn decode_history_length(object: &Object<'_, '_>) -> Read<Option<u32>> {
    Ok(object.count("historyLength")?.filter(|length| *length > 0))
}

/// "No history" has no form here; one message is the closest.
fn encode_history_length(writer: &mut Writer, length: Option<u32>) {
    maybe_count(writer, "historyLength", length.map(|length| length.max(1)));
}

fn decode_list(object: &Object<'_, '_>) -> Read<ListTasks> {
    Ok(ListTasks {
        context_id: object.text("contextId")?.map(ContextId::from),
        status: object.maybe("status", |node| decode_state_filter(node, enums::decode_filter))?.flatten(),
        page_size: object.maybe("pageSize", decode_page_size)?,
        page_token: object.text("pageToken")?,
        history_length: decode_history_length(object)?,
        status_timestamp_after: object.maybe("statusTimestampAfter", time::decode)?,
        include_artifacts: object.flag("includeArtifacts")?.unwrap_or_default(),
        tenant: None,
    })
}

fn encode_list(writer: &mut Writer, req: &ListTasks) {
    writer.maybe_text("contextId", req.context_id.as_ref().map(AsRef::as_ref));
    writer.maybe_text("status", req.status.map(|state| enums::state(state, Style::default())));
    maybe_count(writer, "pageSize", req.page_size);
    writer.maybe_text("pageToken", req.page_token.as_deref());
    encode_history_length(writer, req.history_length);
    if let Some(after) = req.status_timestamp_after {
        writer.text("statusTimestampAfter", &after.to_string());
    }
    writer.flag_if_set("includeArtifacts", req.include_artifacts);
}

fn decode_page_size(node: Node<'_, '_>) -> Read<u32> {
    match u32::try_from(node.int32()?) {
        Ok(size @ 1..=MAX_PAGE_SIZE) => Ok(size),
        _ => Err(node.expected(format_args!("an integer from 1 to {MAX_PAGE_SIZE}"))),
    }
}

fn decode_config_ref(object: &Object<'_, '_>) -> Read<PushConfigRef> {
    Ok(PushConfigRef {
        task_id: object.need_text("id")?.into(),
        id: object.text(CONFIG_ID)?.map(Into::into),
        tenant: None,
    })
}
