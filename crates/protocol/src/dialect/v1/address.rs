//! HTTP+JSON requests of 1.0: what stands in the path and the query together with the body.
//!
//! What is said twice must be the same: a task, a webhook or a tenant in the body or in the query is that of the path.

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
    let at = At(address);
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
            // With one verb it is said in the body, with the other in the query.
            let body = body.object()?;
            at.task("id", &body)?;
            let tenant = at.tenant(&body)?;
            let tenant = at.tenant(&query)?.or(tenant);
            Operation::SubscribeToTask(SubscribeToTask { id: at.task("id", &query)?, tenant })
        }
        OperationKind::CreatePushConfig => {
            let said = body.object()?;
            let (task, tenant) = (at.task("taskId", &said)?, at.tenant(&said)?);
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

/// What a request says beside its body.
pub fn address(operation: &Operation) -> Address {
    let at = |tenant: &Option<String>, task: &TaskId| Address {
        tenant: tenant.clone(),
        task: Some(task.to_string()),
        ..Address::default()
    };
    let in_tenant = |tenant: &Option<String>| Address { tenant: tenant.clone(), ..Address::default() };
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => in_tenant(&req.tenant),
        Operation::GetTask(req) => Address {
            query: query::pairs([("historyLength", number(req.history_length))]),
            ..at(&req.tenant, &req.id)
        },
        Operation::ListTasks(req) => {
            Address { query: query::list_pairs(req, task::state_name), ..in_tenant(&req.tenant) }
        }
        Operation::CancelTask(req) => at(&req.tenant, &req.id),
        Operation::SubscribeToTask(req) => at(&req.tenant, &req.id),
        Operation::CreatePushConfig(config) => {
            Address { task: config.task_id.as_ref().map(ToString::to_string), ..in_tenant(&config.tenant) }
        }
        Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => {
            Address { config: req.id.as_ref().map(ToString::to_string), ..at(&req.tenant, &req.task_id) }
        }
        Operation::ListPushConfigs(req) => Address {
            query: query::pairs([("pageSize", number(req.page_size)), ("pageToken", req.page_token.clone())]),
            ..at(&req.tenant, &req.task_id)
        },
        Operation::GetExtendedCard(req) => in_tenant(&req.tenant),
    }
}

/// Writes the body of a request; an empty object where the address says it all.
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

/// What the path says, against which everything else is held.
struct At<'a>(&'a Address);

impl At<'_> {
    fn send(&self, body: Node<'_, '_>) -> Read<SendMessage> {
        let mut req = operation::decode_send(body)?;
        req.tenant = self.in_tenant(req.tenant)?;
        Ok(req)
    }

    fn task(&self, field: &str, said: &Object<'_, '_>) -> Read<TaskId> {
        need(field, self.0.task.as_deref(), said).map(TaskId::from)
    }

    fn config(&self, said: &Object<'_, '_>) -> Read<PushConfigRef> {
        Ok(PushConfigRef {
            task_id: self.task("taskId", said)?,
            id: Some(need("id", self.0.config.as_deref(), said)?.into()),
            tenant: self.tenant(said)?,
        })
    }

    fn tenant(&self, said: &Object<'_, '_>) -> Read<Option<String>> {
        self.in_tenant(said.text("tenant")?)
    }

    /// The tenant may be named in either place.
    fn in_tenant(&self, said: Option<String>) -> Read<Option<String>> {
        match &self.0.tenant {
            None => Ok(said),
            Some(path) if said.is_none() || said.as_ref() == Some(path) => Ok(Some(path.clone())),
            Some(_) => Err(other("tenant")),
        }
    }
}

/// What the path says, unless something else is said beside it.
fn need<'a>(field: &str, path: Option<&'a str>, said: &Object<'_, '_>) -> Read<&'a str> {
    let path = path.unwrap_or_default();
    match said.text(field)? {
        Some(said) if said != path => Err(other(field)),
        _ if path.is_empty() => Err(Violation::new(field, "required, expected a non-empty string")),
        _ => Ok(path),
    }
}

fn other(field: &str) -> Violation {
    Violation::new(field, format_args!("expected the {field} of the path, or none"))
}
