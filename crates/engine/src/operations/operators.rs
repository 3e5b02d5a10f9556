//! What operators may do with tasks of all owners, also of agents that are not registered any more. Nothing here checks
//! who asks: `inbound` has verified the admin token.
//!
//! Operators name tasks by the ids of this server. Ids that clients have chosen are names within one owner's scope, and
//! two owners may have chosen the same one.

use std::sync::Arc;

use protocol::{CancelTask, ContextId, Task, TaskId, Timestamp};

use crate::{
    cursor::PageTokens,
    engine::{Call, EngineInner},
    error::{Error, Result},
    ids::TaskNo,
    memory::Reservation,
    operations::{cancel_task, get_task},
    store::{ListPosition, Lookup, OperatorQuery, OwnedTask, TaskCounts},
    task::PublicIds,
};

/// The tasks of an engine, whoever owns them.
pub struct OperatorTasks(Arc<EngineInner>);

/// A page of tasks of all owners, the newest task first.
pub struct OperatorList {
    /// At most as many as asked for. Fewer, although there is a next page, if the search had to stop.
    pub tasks: Vec<ListedTask>,
    /// For the next page of the same filter; `None` on the last one.
    pub next_page_token: Option<String>,
    /// How many tasks of this page are left out because they are damaged.
    pub unreadable: u64,
}

/// A task of some owner.
pub struct ListedTask {
    /// The id of this server.
    pub id: TaskId,
    /// As its owner sees it.
    pub context_id: ContextId,
    /// The row, and the owner.
    pub owned: OwnedTask,
}

impl OperatorTasks {
    pub(crate) fn new(engine: Arc<EngineInner>) -> Self {
        Self(engine)
    }

    /// Lists tasks.
    pub async fn list(&self, query: OperatorQuery, page_token: Option<&str>) -> Result<OperatorList> {
        let tokens = PageTokens::of_operators(self.0.seal_key, &query);
        let before = match page_token {
            Some(token) => Some(tokens.open(token).ok_or_else(bad_token)?.no),
            None => None,
        };
        let page = self.0.store.tasks_of_all(OperatorQuery { before, ..query }).await?;
        let token = |no: TaskNo| tokens.token(ListPosition { status_at: Timestamp::from_millis(0), no });
        Ok(OperatorList {
            tasks: page.tasks.into_iter().map(|owned| self.listed(owned)).collect(),
            next_page_token: page.next.map(token),
            unreadable: page.unreadable,
        })
    }

    /// The task with this id of this server; `None` if there is none.
    pub async fn find(&self, id: &TaskId) -> Result<Option<ListedTask>> {
        let Some((no, tag)) = self.0.ids.parse_task(id) else { return Ok(None) };
        let Some(scope) = self.0.store.owner(no, tag).await? else { return Ok(None) };
        let lookup = Lookup { ours: Some((no, tag)), name: id.clone() };
        let row = self.0.store.row(&scope, lookup).await?;
        Ok(row.map(|row| self.listed(OwnedTask { row, scope })))
    }

    /// How many tasks there are, and how much work.
    pub async fn counts(&self) -> Result<TaskCounts> {
        Ok(self.0.store.task_counts().await?)
    }

    /// The whole task, as its owner sees it. What is read is charged to the reservation.
    pub async fn read(&self, task: &ListedTask, memory: Arc<Reservation>) -> Result<Task> {
        get_task::load_task(&self.0, &owner_call(task, memory), &task.id, None).await
    }

    /// Cancels a task as its owner could, and returns it.
    pub async fn cancel(&self, task: &ListedTask, memory: Arc<Reservation>) -> Result<Task> {
        let request = CancelTask::from(task.id.clone());
        cancel_task::cancel_task(&self.0, owner_call(task, memory), request).await
    }

    fn listed(&self, owned: OwnedTask) -> ListedTask {
        let context_id = PublicIds::of(&self.0.ids, &owned.row).context;
        ListedTask { id: self.0.ids.task(owned.row.no, owned.row.tag), context_id, owned }
    }
}

fn owner_call(task: &ListedTask, memory: Arc<Reservation>) -> Call {
    Call { memory: Some(memory), ..Call::new(task.owned.scope.clone()) }
}

fn bad_token() -> Error {
    Error::invalid("pageToken", "expected a nextPageToken of the same filters")
}
