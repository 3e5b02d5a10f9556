//! What operators may do with tasks of all owners. Nothing here checks who asks: `inbound` has verified the admin token,
//! and the command line has the files.
//!
//! Operators name tasks by the ids of this server. Ids that clients have chosen are names within one owner's scope, and
//! two owners may have chosen the same one.

use std::sync::Arc;

use protocol::{ContextId, Task, TaskId, Timestamp};

use crate::{
    cursor::PageTokens,
    error::{Error, Result},
    ids::{Ids, TaskNo},
    log::Log,
    store::{
        Advance, Change, JournalChange, ListPosition, Lookup, OperatorQuery, OwnedTask, Step, Store,
        TaskCounts, View,
    },
    task::{PublicIds, cancel, fold},
};

/// The tasks of a store, whoever owns them.
pub struct OperatedTasks {
    store: Arc<dyn Store>,
    ids: Ids,
}

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

impl OperatedTasks {
    /// Those of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { ids: store.ids(), store }
    }

    /// Lists tasks.
    pub async fn list(&self, query: OperatorQuery, page_token: Option<&str>) -> Result<OperatorList> {
        let tokens = PageTokens::of_operators(self.store.seal_key(), &query);
        let before = match page_token {
            Some(token) => Some(tokens.open(token).ok_or_else(bad_token)?.no),
            None => None,
        };
        let page = self.store.tasks_of_all(OperatorQuery { before, ..query }).await?;
        let token = |no: TaskNo| tokens.token(ListPosition { status_at: Timestamp::from_millis(0), no });
        Ok(OperatorList {
            tasks: page.tasks.into_iter().map(|owned| self.listed(owned)).collect(),
            next_page_token: page.next.map(token),
            unreadable: page.unreadable,
        })
    }

    /// The task with this id of this server; `None` if there is none.
    pub async fn find(&self, id: &TaskId) -> Result<Option<ListedTask>> {
        let Some((no, tag)) = self.ids.parse_task(id) else { return Ok(None) };
        let Some(scope) = self.store.owner(no, tag).await? else { return Ok(None) };
        let lookup = Lookup { ours: Some((no, tag)), name: id.clone() };
        let row = self.store.row(&scope, lookup).await?;
        Ok(row.map(|row| self.listed(OwnedTask { row, scope })))
    }

    /// How many tasks there are, and how much work.
    pub async fn counts(&self) -> Result<TaskCounts> {
        Ok(self.store.task_counts().await?)
    }

    /// The whole task.
    pub async fn read(&self, task: &ListedTask) -> Result<Task> {
        let snapshot = self.store.read(&task.owned.scope, lookup(task), View::default()).await?;
        let snapshot = snapshot.ok_or_else(|| protocol::Error::task_not_found(&task.id))?;
        Ok(fold::into_task(&self.ids, snapshot)?)
    }

    /// Cancels a task of a store that no engine uses. Where one does, [`Engine::call`](crate::Engine::call) stops its
    /// run too.
    pub async fn cancel_unserved(&self, task: &ListedTask, now: Timestamp) -> Result<()> {
        let row = &task.owned.row;
        let event = cancel::cancel(&PublicIds::of(&self.ids, row), row.state, now)?;
        let log = Log::pack([(event, None)]);
        let change = Change::Advance(Box::new(Advance {
            status: log.status(),
            log,
            journal: JournalChange::Clear,
            ..Advance::new(row.no, Step::Cancel)
        }));
        self.store.commit(change).await?;
        Ok(())
    }

    fn listed(&self, owned: OwnedTask) -> ListedTask {
        let context_id = PublicIds::of(&self.ids, &owned.row).context;
        ListedTask { id: self.ids.task(owned.row.no, owned.row.tag), context_id, owned }
    }
}

fn lookup(task: &ListedTask) -> Lookup {
    Lookup { ours: Some((task.owned.row.no, task.owned.row.tag)), name: task.id.clone() }
}

fn bad_token() -> Error {
    Error::invalid("pageToken", "expected a nextPageToken of the same filters")
}
