//! Tasks at a server, and in a store that no server has open. Both return the documents of the operators' API.

use std::sync::Arc;

use engine::{DEFAULT_TENANT, ListedTask, OperatedTasks, store::OperatorQuery};
use http::Method;
use inbound::{AuditEntry, task_document};
use protocol::{TaskId, TaskState, Timestamp, dialect::v03::task::state_name};

use crate::cli::{
    failure::{Failure, code},
    operate::{Access, StoppedStore, segment, with_query},
};

/// What a list of tasks is restricted to.
pub(super) struct Filter<'a> {
    pub(super) agent: Option<&'a str>,
    pub(super) owner: Option<&'a str>,
    pub(super) state: Option<TaskState>,
    pub(super) since: Option<Timestamp>,
}

/// A page of at most `size` tasks.
pub(super) async fn list(
    access: &Access,
    filter: &Filter<'_>,
    size: usize,
    page_token: Option<&str>,
) -> Result<Vec<u8>, Failure> {
    let Filter { agent, owner, state, since } = *filter;
    match access {
        Access::Server(server) => {
            let (since, size) = (since.map(|time| time.to_string()), size.to_string());
            let parameters = [
                ("agent", agent),
                ("owner", owner),
                ("state", state.map(state_name)),
                ("since", since.as_deref()),
                ("pageSize", Some(&*size)),
                ("pageToken", page_token),
            ];
            server.get(&with_query("/tasks", &parameters)).await
        }
        Access::Store(store) => {
            let query = OperatorQuery {
                tenant: DEFAULT_TENANT.to_owned(),
                agent: agent.map(str::to_owned),
                principal: owner.map(str::to_owned),
                state,
                since,
                before: None,
                size,
            };
            Ok(task_document::list(&tasks(store).list(query, page_token).await?))
        }
    }
}

/// One task.
pub(super) async fn get(access: &Access, id: &str) -> Result<Vec<u8>, Failure> {
    match access {
        Access::Server(server) => server.get(&format!("/tasks/{}", segment(id))).await,
        Access::Store(store) => show(store, &find(store, id).await?).await,
    }
}

/// Cancels a task, and returns it.
pub(super) async fn cancel(access: &Access, id: &str) -> Result<Vec<u8>, Failure> {
    match access {
        Access::Server(server) => {
            server.send(Method::POST, &format!("/tasks/{}/cancel", segment(id)), Vec::new()).await
        }
        Access::Store(store) => {
            let found = find(store, id).await?;
            tasks(store).cancel_unserved(&found, store.clock.now()).await?;
            let agent = Some(found.owned.scope.agent().to_owned());
            let task = Some(found.id.to_string());
            store.record(AuditEntry { agent, task, ..store.change("task.cancel") }).await?;
            show(store, &find(store, id).await?).await
        }
    }
}

/// The numbers of tasks and the work.
pub(super) async fn counts(access: &Access) -> Result<Vec<u8>, Failure> {
    match access {
        Access::Server(server) => server.get("/counts").await,
        Access::Store(store) => {
            let counts = tasks(store).counts().await?;
            Ok(task_document::counts(&counts, None, DEFAULT_TENANT, store.clock.now()))
        }
    }
}

fn tasks(store: &StoppedStore) -> OperatedTasks {
    OperatedTasks::new(Arc::clone(&store.store))
}

async fn find(store: &StoppedStore, id: &str) -> Result<ListedTask, Failure> {
    let id = TaskId::from(id.to_owned());
    let found = tasks(store).find(&id).await?;
    found.ok_or_else(|| {
        Failure::new(code::NOT_FOUND, format!("there is no task with the id {:?}", id.as_str()))
    })
}

async fn show(store: &StoppedStore, found: &ListedTask) -> Result<Vec<u8>, Failure> {
    Ok(task_document::one(found, &tasks(store).read(found).await?))
}

impl From<engine::Error> for Failure {
    fn from(error: engine::Error) -> Self {
        match error {
            engine::Error::Refused(error) => Self::new(code::PROTOCOL, error.message),
            engine::Error::RetryLater(error) => Self::new(code::ERROR, error.message),
            engine::Error::Unavailable(reason) | engine::Error::Broken(reason) => {
                Self::new(code::ERROR, reason)
            }
        }
    }
}
