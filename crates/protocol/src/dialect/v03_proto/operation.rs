//! Requests: path, query and body, decoding and encoding.
//!
//! The binding matches the method and the path. It passes the ids of the path and the query parameters,
//! decoded, as an [`Address`], and the body if there is one.

use crate::{
    CancelTask, ConfigId, Error, GetExtendedCard, GetTask, Json, ListTasks, Operation, OperationKind,
    PushConfigQuery, PushConfigRef, SendMessage, SubscribeToTask, TaskId, Violation,
    dialect::{legacy::operation::maybe_count, query},
    json::{
        Raw,
        read::{Node, Object, Path, Read},
        write::Writer,
    },
    operation::decode_metadata,
};

pub use crate::rest::Address;

use super::{message, push, task};

/// Field names of the path's ids in violations.
pub(crate) const TASK: &str = "id";
pub(crate) const CONFIG: &str = "pushNotificationConfigId";

/// Reads a request.
pub fn decode(kind: OperationKind, address: &Address, body: Option<Raw<'_>>) -> Result<Operation, Error> {
    let body = Node::new(body.unwrap_or(Raw::EMPTY_OBJECT), &Path::Root).bounded();
    let query = query::object(&address.query);
    let query = query.as_ref().map_or(Raw::EMPTY_OBJECT, Json::as_raw);
    let query = Node::new(query, &Path::Root).object()?;
    let operation = match kind {
        OperationKind::SendMessage => Operation::SendMessage(decode_send(body)?),
        OperationKind::SendStreamingMessage => Operation::SendStreamingMessage(decode_send(body)?),
        OperationKind::GetTask => Operation::GetTask(GetTask {
            id: task_id(address)?,
            history_length: decode_history_length(&query)?,
            tenant: None,
        }),
        OperationKind::ListTasks => Operation::ListTasks(decode_list(&query)?),
        OperationKind::CancelTask => {
            Operation::CancelTask(CancelTask { id: task_id(address)?, metadata: None, tenant: None })
        }
        OperationKind::SubscribeToTask => {
            Operation::SubscribeToTask(SubscribeToTask { id: task_id(address)?, tenant: None })
        }
        OperationKind::CreatePushConfig => {
            let mut config = push::decode_created(body, &task_id(address)?)?;
            if config.id.is_none() {
                config.id = query.text("configId")?.map(ConfigId::from);
            }
            Operation::CreatePushConfig(config)
        }
        OperationKind::GetPushConfig => Operation::GetPushConfig(config_ref(address)?),
        OperationKind::ListPushConfigs => Operation::ListPushConfigs(PushConfigQuery {
            task_id: task_id(address)?,
            page_size: query.count("pageSize")?,
            page_token: query.text("pageToken")?,
            tenant: None,
        }),
        OperationKind::DeletePushConfig => Operation::DeletePushConfig(config_ref(address)?),
        OperationKind::GetExtendedCard => Operation::GetExtendedCard(GetExtendedCard::default()),
    };
    Ok(operation)
}

/// The path and query parameters of a request.
pub fn address(operation: &Operation) -> Address {
    let at = |task: &TaskId| Address { task: Some(task.to_string()), ..Address::default() };
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let config = |req: &PushConfigRef| Address {
        config: req.id.as_ref().map(ToString::to_string),
        ..at(&req.task_id)
    };
    match operation {
        Operation::SendMessage(_) | Operation::SendStreamingMessage(_) | Operation::GetExtendedCard(_) => {
            Address::default()
        }
        Operation::GetTask(req) => Address {
            query: query::pairs([("historyLength", number(at_least_one(req.history_length)))]),
            ..at(&req.id)
        },
        Operation::ListTasks(req) => Address { query: list_query(req), ..Address::default() },
        Operation::CancelTask(req) => at(&req.id),
        Operation::SubscribeToTask(req) => at(&req.id),
        Operation::CreatePushConfig(config) => config.task_id.as_ref().map(at).unwrap_or_default(),
        Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => config(req),
        Operation::ListPushConfigs(req) => Address {
            query: query::pairs([("pageSize", number(req.page_size)), ("pageToken", req.page_token.clone())]),
            ..at(&req.task_id)
        },
    }
}

/// Writes the body of a request; an empty object if path and query contain everything.
pub fn encode(writer: &mut Writer, operation: &Operation) {
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => encode_send(writer, req),
        Operation::CreatePushConfig(config) => push::encode(writer, config),
        _ => writer.object(|_| {}),
    }
}

fn decode_send(node: Node<'_, '_>) -> Read<SendMessage> {
    let object = node.object()?;
    let (name, message) = match object.maybe("message", message::decode)? {
        Some(message) => ("message", message),
        None => {
            let older = object.maybe("request", message::decode)?;
            ("request", older.ok_or_else(|| object.lacks("message", "a message"))?)
        }
    };
    let mut req = SendMessage {
        metadata: decode_metadata(&object)?,
        skill: object.text("skill")?,
        ..SendMessage::new(message)
    };
    if req.message.id.as_str().is_empty() {
        let field = format_args!("{name}.messageId");
        return Err(Violation::new(field, "expected a non-empty string, found nothing"));
    }
    object.maybe("configuration", |node| {
        let object = node.object()?;
        req.accepted_output_modes = object.texts("acceptedOutputModes")?;
        req.history_length = decode_history_length(&object)?;
        // Protobuf cannot distinguish an absent flag from false, and clients omit false in JSON: a
        // configuration without `blocking: true` does not wait. A request without a configuration waits.
        req.return_immediately = !object.flag("blocking")?.unwrap_or_default();
        req.push = match object.maybe("pushNotification", push::decode_bare)? {
            None => object.maybe("pushNotificationConfig", push::decode_bare)?,
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
        message::encode(writer.key("message"), &req.message);
        writer.key("configuration").object(|writer| {
            writer.texts_unless_empty("acceptedOutputModes", &req.accepted_output_modes);
            if let Some(config) = &req.push {
                push::encode_bare(writer.key("pushNotification"), config);
            }
            maybe_count(writer, "historyLength", at_least_one(req.history_length));
            // Always written: a server that decodes protobuf reads an absent flag as false.
            writer.key("blocking").boolean(!req.return_immediately);
        });
        writer.maybe_json("metadata", req.metadata_with_skill().as_ref());
    });
}

/// In this version zero is the same as unspecified: the whole history.
fn decode_history_length(object: &Object<'_, '_>) -> Read<Option<u32>> {
    Ok(object.count("historyLength")?.filter(|length| *length > 0))
}

/// The smallest length that can be requested: "no history" has no form here.
pub(crate) fn at_least_one(length: Option<u32>) -> Option<u32> {
    length.map(|length| length.max(1))
}

/// This version defines no list request; the names are those of 1.0.
fn decode_list(query: &Object<'_, '_>) -> Read<ListTasks> {
    let req = query::decode_list(query, task::decode_state)?;
    Ok(ListTasks { history_length: decode_history_length(query)?, tenant: None, ..req })
}

fn list_query(req: &ListTasks) -> Vec<(String, String)> {
    let req = ListTasks { history_length: at_least_one(req.history_length), ..req.clone() };
    query::list_pairs(&req, task::state_name)
}

fn task_id(address: &Address) -> Read<TaskId> {
    filled(address.task.as_deref(), TASK).map(TaskId::from)
}

fn config_ref(address: &Address) -> Read<PushConfigRef> {
    let id = filled(address.config.as_deref(), CONFIG)?;
    Ok(PushConfigRef { task_id: task_id(address)?, id: Some(id.into()), tenant: None })
}

fn filled<'a>(id: Option<&'a str>, field: &str) -> Read<&'a str> {
    id.filter(|id| !id.is_empty())
        .ok_or_else(|| Violation::new(field, "required, expected a non-empty string"))
}
