//! Messages of a conversation (A2A context) that precede the current task.

use std::sync::Arc;

use protocol::Message;

use crate::{error::Result, ids::TaskNo, scope::Scope, store::Store, task};

/// Reads earlier messages of a conversation from the store on demand.
#[derive(Clone)]
pub struct Conversation {
    store: Arc<dyn Store>,
    scope: Scope,
    /// The first task of the conversation; the store identifies a conversation by it.
    first: TaskNo,
    /// The current task; only earlier ones are read.
    before: TaskNo,
}

/// How many earlier tasks are read; the newest ones.
const MAX_TASKS: usize = 100;

impl Conversation {
    pub(crate) fn new(store: Arc<dyn Store>, scope: Scope, first: TaskNo, before: TaskNo) -> Self {
        Self { store, scope, first, before }
    }

    /// The messages of earlier tasks, oldest first. The first task of a conversation reads nothing from the
    /// store.
    pub async fn messages(&self) -> Result<Vec<Message>> {
        if self.first == self.before {
            return Ok(Vec::new());
        }
        let mut messages = Vec::new();
        for snapshot in self.store.context_history(&self.scope, self.first, self.before, MAX_TASKS).await? {
            messages.extend(task::fold::snapshot(&self.store.ids(), &snapshot)?.history);
        }
        Ok(messages)
    }
}
