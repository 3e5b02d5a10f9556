//! Operations: method names and parameters, decoding and encoding.

use crate::{
    CancelTask, ContextId, Error, GetTask, Operation, OperationKind, PushConfigRef, SendMessage,
    SubscribeToTask, TaskId,
    dialect::{Dialect, Leniency, Style, family, legacy::operation},
    json::{
        Raw,
        read::{Node, Object, Path, Read},
        write::Writer,
    },
    operation::decode_metadata,
};

use super::{message, push, task};

/// The methods of this dialect. Those without `send` and `pushNotification` in their name also exist in 0.2
/// and 0.3.
pub const METHODS: [(&str, OperationKind); 7] = [
    ("tasks/send", OperationKind::SendMessage),
    ("tasks/sendSubscribe", OperationKind::SendStreamingMessage),
    ("tasks/get", OperationKind::GetTask),
    ("tasks/cancel", OperationKind::CancelTask),
    ("tasks/resubscribe", OperationKind::SubscribeToTask),
    ("tasks/pushNotification/set", OperationKind::CreatePushConfig),
    ("tasks/pushNotification/get", OperationKind::GetPushConfig),
];

/// The `historyLength` that requests the whole history: this dialect only allows a number.
const ALL_HISTORY: u32 = i32::MAX.unsigned_abs();
/// The method name of an operation, where this dialect has one.
pub fn method(kind: OperationKind) -> Option<&'static str> {
    operation::method(&METHODS, kind)
}

/// Whether this dialect has a method. Its requests may omit `jsonrpc`.
pub fn has(method: &str) -> bool {
    kind(method).is_some()
}

/// The operation of a method.
pub fn kind(method: &str) -> Option<OperationKind> {
    operation::kind(&METHODS, method)
}

/// Reads a request. Absent parameters equal an empty object.
pub fn decode(method: &str, params: Option<Raw<'_>>) -> Result<Operation, Error> {
    decode_with(method, params, Leniency::default())
}

/// Reads a request with a profile's relaxed rules.
pub fn decode_with(method: &str, params: Option<Raw<'_>>, leniency: Leniency) -> Result<Operation, Error> {
    let kind = kind(method).ok_or_else(|| family::unknown(Dialect::Draft, method, &METHODS))?;
    let node = Node::new(params.unwrap_or(Raw::EMPTY_OBJECT), &Path::Root).bounded();
    let object = node.object()?;
    let operation = match kind {
        OperationKind::SendMessage => Operation::SendMessage(decode_send(&object, leniency)?),
        OperationKind::SendStreamingMessage => {
            Operation::SendStreamingMessage(decode_send(&object, leniency)?)
        }
        OperationKind::GetTask => Operation::GetTask(GetTask {
            id: need_id(&object)?,
            history_length: decode_history_length(&object)?,
            tenant: None,
        }),
        OperationKind::CancelTask => Operation::CancelTask(CancelTask {
            id: need_id(&object)?,
            metadata: object.json_object("metadata")?,
            tenant: None,
        }),
        OperationKind::SubscribeToTask => {
            Operation::SubscribeToTask(SubscribeToTask { id: need_id(&object)?, tenant: None })
        }
        OperationKind::CreatePushConfig => Operation::CreatePushConfig(push::decode(node)?),
        OperationKind::GetPushConfig => {
            Operation::GetPushConfig(PushConfigRef { task_id: need_id(&object)?, id: None, tenant: None })
        }
        OperationKind::ListTasks
        | OperationKind::ListPushConfigs
        | OperationKind::DeletePushConfig
        | OperationKind::GetExtendedCard => {
            return Err(family::unknown(Dialect::Draft, method, &METHODS));
        }
    };
    Ok(operation)
}

/// Writes the parameters of a request; an empty object for operations without a method in this dialect.
pub fn encode(writer: &mut Writer, operation: &Operation) {
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => encode_send(writer, req),
        Operation::GetTask(req) => writer.object(|writer| {
            writer.text("id", req.id.as_str());
            encode_history_length(writer, req.history_length);
        }),
        Operation::CancelTask(req) => writer.object(|writer| {
            writer.text("id", req.id.as_str());
            writer.maybe_json("metadata", req.metadata.as_ref());
        }),
        Operation::SubscribeToTask(req) => writer.object(|writer| writer.text("id", req.id.as_str())),
        Operation::CreatePushConfig(config) => push::encode(writer, config),
        Operation::GetPushConfig(req) => writer.object(|writer| writer.text("id", req.task_id.as_str())),
        Operation::ListTasks(_)
        | Operation::ListPushConfigs(_)
        | Operation::DeletePushConfig(_)
        | Operation::GetExtendedCard(_) => writer.object(|_| {}),
    }
}

fn decode_send(object: &Object<'_, '_>, leniency: Leniency) -> Read<SendMessage> {
    let task_id = match object.maybe("id", task::decode_id)? {
        None if !leniency.task_id_optional => return Err(object.lacks("id", "a non-empty string")),
        id => id.map(TaskId::from),
    };
    let (skill, metadata) = (object.text("skill")?, decode_metadata(object)?);
    let in_metadata = || metadata.as_ref().is_some_and(|metadata| metadata.as_str().contains("\"skillId\""));
    let names_skill = skill.is_some() || in_metadata();
    let mut message = object.need("message", "a message", |node| message::decode_sent(node, names_skill))?;
    if let Some(session) = object.text("sessionId")? {
        message.context_id = Some(ContextId::from(session));
    }
    Ok(SendMessage {
        accepted_output_modes: object.texts("acceptedOutputModes")?,
        history_length: decode_history_length(object)?,
        return_immediately: object.flag("async")?.unwrap_or_default(),
        push: object.maybe("pushNotification", |node| push::decode_config(node, task_id.as_ref()))?,
        metadata,
        skill,
        tenant: None,
        message: crate::Message { task_id, ..message },
    })
}

fn encode_send(writer: &mut Writer, req: &SendMessage) {
    writer.object(|writer| {
        writer.maybe_text("id", req.message.task_id.as_ref().map(AsRef::as_ref));
        writer.maybe_text("sessionId", req.message.context_id.as_ref().map(AsRef::as_ref));
        writer.maybe_text("skill", req.skill.as_deref());
        message::encode(writer.key("message"), &req.message, Style::default());
        writer.texts_unless_empty("acceptedOutputModes", &req.accepted_output_modes);
        if let Some(config) = &req.push {
            push::encode_config(writer.key("pushNotification"), config);
        }
        encode_history_length(writer, req.history_length);
        writer.flag_if_set("async", req.return_immediately);
        writer.maybe_json("metadata", req.metadata.as_ref());
    });
}

fn need_id(object: &Object<'_, '_>) -> Read<TaskId> {
    object.need("id", "a non-empty string", task::decode_id).map(TaskId::from)
}

/// An absent length means no history; the largest number means all of it.
fn decode_history_length(object: &Object<'_, '_>) -> Read<Option<u32>> {
    let length = object.count("historyLength")?.unwrap_or_default();
    Ok(Some(length).filter(|length| *length != ALL_HISTORY))
}

fn encode_history_length(writer: &mut Writer, length: Option<u32>) {
    let length = length.unwrap_or(ALL_HISTORY);
    operation::maybe_count(writer, "historyLength", Some(length).filter(|length| *length > 0));
}
