//! `/console/api/tasks`: lists, shows and cancels tasks of all owners.

use std::sync::Arc;

use axum::response::Response;
use engine::{ListedTask, ResponseNote, store::OperatorQuery};
use http::StatusCode;
use protocol::{
    Error, TaskId, TaskState, Timestamp, Violation,
    dialect::{v1, v03::task::state_name},
    error::excerpt,
};

use super::{Subject, failure, named, query_parameters, respond, task_document};
use crate::{request::exchange::Exchange, response::respond::with_note};

const PAGE_SIZE: usize = 50;
const MAX_PAGE_SIZE: usize = 100;

/// `GET`: a page of tasks, the newest first, without their content.
pub(super) async fn list(exchange: &Exchange) -> Result<Response, Error> {
    let names = ["agent", "state", "owner", "since", "pageSize", "pageToken"];
    let [agent, state, owner, since, page_size, page_token] = query_parameters(exchange, names)?;
    let query = OperatorQuery {
        tenant: exchange.endpoint.tenant.id().to_owned(),
        agent,
        principal: owner,
        state: state.map(|text| read_state(&text)).transpose()?,
        since: since.map(|text| read_time(&text)).transpose()?,
        before: None,
        size: page_size.map_or(Ok(PAGE_SIZE), |text| read_size(&text))?,
    };
    let list = exchange.server.engine.operator_tasks().list(query, page_token.as_deref()).await;
    let list = list.map_err(|error| failure(exchange, error))?;
    let response = respond(StatusCode::OK, task_document::list(&list));
    Ok(match list.unreadable {
        0 => response,
        count => with_note(&ResponseNote::Unreadable(count), response),
    })
}

/// `GET …/{id}`: a task as its owner sees it over 1.0, with what operators need.
pub(super) async fn get(exchange: &Exchange) -> Result<Response, Error> {
    let [] = query_parameters(exchange, [])?;
    let id = TaskId::from(named(exchange));
    let found = find(exchange, &id).await?;
    let task = exchange.server.engine.operator_tasks().read(&found, Arc::clone(&exchange.memory)).await;
    let task = task.map_err(|error| failure(exchange, error))?;
    Ok(respond(StatusCode::OK, task_document::one(&found, &task)))
}

/// `POST …/{id}/cancel`: the same transition as a cancel of its owner.
pub(super) async fn cancel(exchange: &Exchange, subject: &mut Subject) -> Result<Response, Error> {
    let [] = query_parameters(exchange, [])?;
    let id = TaskId::from(named(exchange));
    subject.task = Some(excerpt(id.as_str()));
    let found = find(exchange, &id).await?;
    subject.agent = Some(found.owned.scope.agent().to_owned());
    let task = exchange.server.engine.operator_tasks().cancel(&found, Arc::clone(&exchange.memory)).await;
    let task = task.map_err(|error| failure(exchange, error))?;
    tracing::info!(task_id = %found.id, agent = found.owned.scope.agent(), "task cancelled by an operator");
    // Read again: the attempt and the state have changed.
    let found = find(exchange, &found.id).await.unwrap_or(found);
    Ok(respond(StatusCode::OK, task_document::one(&found, &task)))
}

async fn find(exchange: &Exchange, id: &TaskId) -> Result<ListedTask, Error> {
    let found = exchange.server.engine.operator_tasks().find(id).await;
    let found = found.map_err(|error| failure(exchange, error))?;
    let is_of_tenant = |task: &ListedTask| task.owned.scope.tenant() == exchange.endpoint.tenant.id();
    found.filter(is_of_tenant).ok_or_else(|| Error::task_not_found(id))
}

/// In the form of 0.3, such as `input-required`, or of 1.0.
fn read_state(text: &str) -> Result<TaskState, Error> {
    let known = || TaskState::ALL.into_iter().filter(|state| *state != TaskState::Unspecified);
    let found = known().find(|state| state_name(*state) == text || v1::task::state_name(*state) == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = known().map(state_name).collect();
        Violation::new("state", format_args!("expected one of {}", names.join(", "))).into()
    })
}

fn read_time(text: &str) -> Result<Timestamp, Error> {
    let expected = "expected a time such as 2026-01-02T03:04:05Z";
    Timestamp::parse(text).ok_or_else(|| Violation::new("since", expected).into())
}

pub(super) fn read_size(text: &str) -> Result<usize, Error> {
    let size = text.parse().ok().filter(|size| (1..=MAX_PAGE_SIZE).contains(size));
    let expected = format_args!("expected a number from 1 to {MAX_PAGE_SIZE}");
    size.ok_or_else(|| Violation::new("pageSize", expected).into())
}
