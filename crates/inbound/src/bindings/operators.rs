//! The operators' API below `/console/api`: JSON in and out, one file for each resource.
//!
//! A request has presented the admin token before it arrives here. Errors have the form of HTTP+JSON 1.0. No response may
//! be cached, because some contain secrets.

mod agent_document;
mod agents;
mod audit;
mod backends;
mod config;
pub mod config_document;
mod counts;
mod deliveries;
mod delivery_document;
mod key_document;
mod keys;
mod task_document;
mod tasks;

use axum::{body::Body, response::Response};
use engine::SwitchState;
use http::{HeaderValue, StatusCode, header};
use protocol::{
    Dialect, Error, ErrorKind, Violation,
    error::excerpt,
    json::{
        Raw,
        read::{Node, Object, Path, Read},
    },
    rest::percent_decode,
};

use tracing::Instrument as _;

use super::run;
use crate::{
    access::audit::AuditEntry,
    request::{body, exchange::Exchange},
    response::respond::{self, to_caller_error},
    routes::Path as RoutePath,
};

/// The most bytes of a request's body.
pub(crate) const MAX_BODY: usize = 4 << 10;

/// How operators are named in records: one token is for all of them.
const OPERATOR: &str = "operator";

/// A call of the operators' API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorCall {
    ListKeys,
    CreateKey,
    RevokeKey,
    ListAgents,
    EnableAgent,
    DisableAgent,
    ListTasks,
    GetTask,
    CancelTask,
    Counts,
    ListDeliveries,
    Resend,
    ListBackends,
    ShowConfig,
    ReadAudit,
}

impl OperatorCall {
    /// The name of a change in the audit log; `None` for calls that change nothing.
    pub(crate) fn action(self) -> Option<&'static str> {
        match self {
            Self::CreateKey => Some("key.create"),
            Self::RevokeKey => Some("key.revoke"),
            Self::EnableAgent => Some("agent.enable"),
            Self::DisableAgent => Some("agent.disable"),
            Self::CancelTask => Some("task.cancel"),
            Self::Resend => Some("delivery.resend"),
            Self::ListKeys
            | Self::ListAgents
            | Self::ListTasks
            | Self::GetTask
            | Self::Counts
            | Self::ListDeliveries
            | Self::ListBackends
            | Self::ShowConfig
            | Self::ReadAudit => None,
        }
    }
}

/// What a call changes, as far as the request names it.
#[derive(Debug, Default)]
struct Subject {
    agent: Option<String>,
    task: Option<String>,
    /// Id of an API key.
    key: Option<String>,
    /// Id of a delivery.
    delivery: Option<String>,
}

/// Handles one request. It is carried out also if its sender disconnects, so that every change is recorded.
pub(crate) async fn handle(call: OperatorCall, exchange: Exchange, body: Body) -> Response {
    let changes = exchange.server.operator_calls.clone();
    let handled = async move {
        let mut subject = Subject::default();
        let result = respond_to(call, &exchange, body, &mut subject).await;
        let refused = result.as_ref().err().map(|error| error.kind.row().reason.to_owned());
        record(call, &exchange, subject, refused).await;
        result.unwrap_or_else(|error| run::error_response(&exchange, &error))
    };
    let handled = changes.spawn(handled.in_current_span());
    without_caching(handled.await.unwrap_or_else(|_| {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    }))
}

/// Records a change in the audit log, before its response is sent. Attempts that fail are recorded too.
async fn record(call: OperatorCall, exchange: &Exchange, subject: Subject, refused: Option<String>) {
    let (Some(action), Some(audit)) = (call.action(), &exchange.server.audit) else { return };
    let Subject { agent, task, key, delivery } = subject;
    let entry = AuditEntry {
        agent,
        task,
        key,
        delivery,
        peer: exchange.sender.connection.peer,
        // It names lines in the log of a server.
        request_id: exchange.server.engine.is_serving().then(|| exchange.request_id.number()),
        refused,
        ..AuditEntry::done(exchange.now(), OPERATOR, action)
    };
    audit.record(entry).await;
}

async fn respond_to(
    call: OperatorCall,
    exchange: &Exchange,
    body: Body,
    subject: &mut Subject,
) -> Result<Response, Error> {
    match call {
        OperatorCall::ListKeys => keys::list(exchange).await,
        OperatorCall::CreateKey => keys::create(exchange, body, subject).await,
        OperatorCall::RevokeKey => keys::revoke(exchange, subject).await,
        OperatorCall::ListAgents => agents::list(exchange).await,
        OperatorCall::EnableAgent => agents::switch(exchange, SwitchState::Enabled, subject).await,
        OperatorCall::DisableAgent => agents::switch(exchange, SwitchState::Disabled, subject).await,
        OperatorCall::ListTasks => tasks::list(exchange).await,
        OperatorCall::GetTask => tasks::get(exchange).await,
        OperatorCall::CancelTask => tasks::cancel(exchange, subject).await,
        OperatorCall::Counts => counts::show(exchange).await,
        OperatorCall::ListDeliveries => deliveries::list(exchange).await,
        OperatorCall::Resend => deliveries::resend(exchange, subject).await,
        OperatorCall::ListBackends => backends::list(exchange),
        OperatorCall::ShowConfig => config::show(exchange),
        OperatorCall::ReadAudit => audit::read(exchange).await,
    }
}

/// The error for a call that the engine did not carry out. Without a server there is no log that has the reason, so the
/// operator gets it.
fn failure(exchange: &Exchange, error: impl Into<engine::Error>) -> Error {
    match error.into() {
        engine::Error::Unavailable(reason) | engine::Error::Broken(reason)
            if !exchange.server.engine.is_serving() =>
        {
            Error::new(ErrorKind::Unavailable, reason)
        }
        error => to_caller_error(error, exchange.request_id),
    }
}

pub(crate) fn without_caching(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn respond(status: StatusCode, document: Vec<u8>) -> Response {
    let mut response = respond::json(document);
    *response.status_mut() = status;
    response
}

/// Reads a body that is an object with no other members than these.
async fn read_object<T>(
    exchange: &Exchange,
    body: Body,
    members: &[&str],
    read: impl FnOnce(&Object<'_, '_>) -> Read<T>,
) -> Result<T, Error> {
    body::check_media_type(&exchange.head.headers, Dialect::V1, exchange.server.errors)?;
    let bytes = exchange.read_body(body).await?;
    let raw = Raw::parse(&bytes).map_err(|fault| {
        Error::new(ErrorKind::Parse, format!("the body is not JSON: {fault}: expected an object"))
    })?;
    let object = Node::new(raw, &Path::Root).bounded().object()?;
    object.entries(|name, _| {
        if members.contains(&name) {
            return Ok(());
        }
        let known = members.join(", ");
        Err(Violation::new(excerpt(name), format_args!("unknown member; the members are {known}")))
    })?;
    if let Some(name) = object.repeated() {
        return Err(Violation::new(name, "the member is repeated; send it once").into());
    }
    Ok(read(&object)?)
}

/// The values of the parameters that a query may have, in the order of their names; `None` for those that are absent.
fn query_parameters<const N: usize>(
    exchange: &Exchange,
    names: [&str; N],
) -> Result<[Option<String>; N], Error> {
    let query = exchange.head.uri.query().unwrap_or_default();
    let mut found = [const { None }; N];
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let problem = match names.iter().position(|name| *name == key) {
            None => unknown_parameter(&names),
            Some(at) if found[at].is_some() => "the parameter is repeated; send it once".to_owned(),
            Some(_) if value.is_empty() => "expected a value".to_owned(),
            Some(at) => {
                found[at] = Some(value.into_owned());
                continue;
            }
        };
        return Err(Violation::new(excerpt(&key), problem).into());
    }
    Ok(found)
}

fn unknown_parameter(names: &[&str]) -> String {
    match names {
        [] => "unknown parameter; there are none at this path".to_owned(),
        [only] => format!("unknown parameter; the only one is {only}"),
        names => format!("unknown parameter; the parameters are {}", names.join(", ")),
    }
}

/// What the path names, without the action that follows it. Text that is not UTF-8 becomes empty, which names nothing.
fn named(exchange: &Exchange) -> String {
    let segment = match (exchange.row.path, exchange.rest()) {
        (RoutePath::Action(_, _, suffix), rest) => rest.strip_suffix(suffix).unwrap_or_default(),
        (_, rest) => rest,
    };
    percent_decode(segment).unwrap_or_default().into_owned()
}

#[cfg(test)]
mod tests {
    use crate::routes::{Handler, Methods, TABLE};

    #[test]
    fn every_call_that_changes_something_has_a_name_in_the_audit_log() {
        for row in &TABLE {
            if let Handler::Operators(call) = row.handler {
                let is_change = row.methods != Methods::Get;
                assert_eq!(call.action().is_some(), is_change, "{call:?}");
            }
        }
    }
}
