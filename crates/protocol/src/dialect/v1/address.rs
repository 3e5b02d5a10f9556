//! HTTP+JSON requests of 1.0: path and query combined with the body.
//!
//! Values given twice must agree: a task, webhook or tenant in the body or the query must equal the one in
//! the path.

use crate::{
    CancelTask, Error, GetExtendedCard, GetTask, Json, ListTasks, Operation, OperationKind, PushConfig,
    PushConfigQuery, PushConfigRef, SendMessage, SubscribeToTask, TaskId, Violation,
    dialect::query,
    json::{
        Raw,
        read::{Node, Object, Path, Read},
        write::Writer,
    },
    rest::Address,
};

use super::{operation, push, task};

/// Reads a request.
pub fn decode(kind: OperationKind, address: &Address, body: Option<Raw<'_>>) -> Result<Operation, Error> {
    let body = Node::new(body.unwrap_or(Raw::EMPTY_OBJECT), &Path::Root).bounded();
    let query = query::object(&address.query);
    let query = query.as_ref().map_or(Raw::EMPTY_OBJECT, Json::as_raw);
    let query = Node::new(query, &Path::Root).object()?;
    let at = PathValues(address);
    let operation = match kind {
        OperationKind::SendMessage => Operation::SendMessage(at.send(body)?),
        OperationKind::SendStreamingMessage => Operation::SendStreamingMessage(at.send(body)?),
        OperationKind::GetTask => Operation::GetTask(GetTask {
            id: at.task("id", &query)?,
            history_length: query.count("historyLength")?,
            tenant: at.tenant(&query)?,
        }),
        OperationKind::ListTasks => Operation::ListTasks(ListTasks {
            tenant: at.tenant(&query)?,
            ..query::decode_list(&query, task::decode_state)?
        }),
        OperationKind::CancelTask => {
            let body = body.object()?;
            Operation::CancelTask(CancelTask {
                id: at.task("id", &body)?,
                metadata: body.json_object("metadata")?,
                tenant: at.tenant(&body)?,
            })
        }
        OperationKind::SubscribeToTask => {
            // One method has it in the body, the other in the query.
            let body = body.object()?;
            at.task("id", &body)?;
            let tenant = at.tenant(&body)?;
            let tenant = at.tenant(&query)?.or(tenant);
            Operation::SubscribeToTask(SubscribeToTask { id: at.task("id", &query)?, tenant })
        }
        OperationKind::CreatePushConfig => {
            let given = body.object()?;
            let (task, tenant) = (at.task("taskId", &given)?, at.tenant(&given)?);
            let config = push::decode(body)?;
            Operation::CreatePushConfig(PushConfig { task_id: Some(task), tenant, ..config })
        }
        OperationKind::GetPushConfig => Operation::GetPushConfig(at.config(&query)?),
        OperationKind::ListPushConfigs => Operation::ListPushConfigs(PushConfigQuery {
            task_id: at.task("taskId", &query)?,
            page_size: query.count("pageSize")?,
            page_token: query.text("pageToken")?,
            tenant: at.tenant(&query)?,
        }),
        OperationKind::DeletePushConfig => Operation::DeletePushConfig(at.config(&query)?),
        OperationKind::GetExtendedCard => {
            Operation::GetExtendedCard(GetExtendedCard { tenant: at.tenant(&query)? })
        }
    };
    Ok(operation)
}

/// The path and query parameters of a request.
pub fn address(operation: &Operation) -> Address {
    let at = |tenant: &Option<String>, task: &TaskId| Address {
        tenant: tenant.clone(),
        task: Some(task.to_string()),
        ..Address::default()
    };
    let matching_tenant = |tenant: &Option<String>| Address { tenant: tenant.clone(), ..Address::default() };
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => matching_tenant(&req.tenant),
        Operation::GetTask(req) => Address {
            query: query::pairs([("historyLength", number(req.history_length))]),
            ..at(&req.tenant, &req.id)
        },
        Operation::ListTasks(req) => {
            Address { query: query::list_pairs(req, task::state_name), ..matching_tenant(&req.tenant) }
        }
        Operation::CancelTask(req) => at(&req.tenant, &req.id),
        Operation::SubscribeToTask(req) => at(&req.tenant, &req.id),
        Operation::CreatePushConfig(config) => Address {
            task: config.task_id.as_ref().map(ToString::to_string),
            ..matching_tenant(&config.tenant)
        },
        Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => {
            Address { config: req.id.as_ref().map(ToString::to_string), ..at(&req.tenant, &req.task_id) }
        }
        Operation::ListPushConfigs(req) => Address {
            query: query::pairs([("pageSize", number(req.page_size)), ("pageToken", req.page_token.clone())]),
            ..at(&req.tenant, &req.task_id)
        },
        Operation::GetExtendedCard(req) => matching_tenant(&req.tenant),
    }
}

/// Writes the body of a request; an empty object if path and query contain everything.
pub fn encode(writer: &mut Writer, operation: &Operation) {
    match operation {
        Operation::SendMessage(_) | Operation::SendStreamingMessage(_) | Operation::CreatePushConfig(_) => {
            operation::encode(writer, operation);
        }
        Operation::CancelTask(req) => {
            writer.object(|writer| writer.maybe_json("metadata", req.metadata.as_ref()));
        }
        _ => writer.object(|_| {}),
    }
}

/// The values of the path, which body and query must not contradict.
struct PathValues<'a>(&'a Address);

impl PathValues<'_> {
    fn send(&self, body: Node<'_, '_>) -> Read<SendMessage> {
        let mut req = operation::decode_send(body)?;
        req.tenant = self.matching_tenant(req.tenant)?;
        Ok(req)
    }

    fn task(&self, field: &str, given: &Object<'_, '_>) -> Read<TaskId> {
        matching_id(field, self.0.task.as_deref(), given).map(TaskId::from)
    }

    fn config(&self, given: &Object<'_, '_>) -> Read<PushConfigRef> {
        Ok(PushConfigRef {
            task_id: self.task("taskId", given)?,
            id: Some(matching_id("id", self.0.config.as_deref(), given)?.into()),
            tenant: self.tenant(given)?,
        })
    }

    fn tenant(&self, given: &Object<'_, '_>) -> Read<Option<String>> {
        self.matching_tenant(given.text("tenant")?)
    }

    /// The tenant may be in either place.
    fn matching_tenant(&self, given: Option<String>) -> Read<Option<String>> {
        match &self.0.tenant {
            None => Ok(given),
            Some(path) if given.is_none() || given.as_ref() == Some(path) => Ok(Some(path.clone())),
            Some(_) => Err(contradiction("tenant")),
        }
    }
}

/// The value of the path, unless body or query contradict it.
fn matching_id<'a>(field: &str, path: Option<&'a str>, given: &Object<'_, '_>) -> Read<&'a str> {
    let path = path.unwrap_or_default();
    match given.text(field)? {
        Some(given) if given != path => Err(contradiction(field)),
        _ if path.is_empty() => Err(Violation::new(field, "required, expected a non-empty string")),
        _ => Ok(path),
    }
}

fn contradiction(field: &str) -> Violation {
    Violation::new(field, format_args!("expected the {field} of the path, or none"))
}
