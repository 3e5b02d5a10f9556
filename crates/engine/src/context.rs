//! Messages of a conversation (A2A context) that precede the current task.

use std::sync::Arc;

use protocol::Message;

use crate::{access::scope::Scope, error::Result, ids::TaskNo, store::Store, task};

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
/// How many bytes of their messages are read; the newest ones.
const MAX_BYTES: usize = 1 << 20;

impl Conversation {
    pub(crate) fn new(store: Arc<dyn Store>, scope: Scope, first: TaskNo, before: TaskNo) -> Self {
        Self { store, scope, first, before }
    }

    /// The messages of earlier tasks, oldest first. The first task of a conversation reads nothing from the
    /// store.
    ///
    /// Only the newest messages are read: those of the newest 100 tasks, and at most 1 MiB of them as stored.
    /// Older ones are left out, and so is everything before the first message that does not fit.
    pub async fn messages(&self) -> Result<Vec<Message>> {
        if self.first == self.before {
            return Ok(Vec::new());
        }
        let mut messages = Vec::new();
        let earlier =
            self.store.context_history(&self.scope, self.first, self.before, MAX_TASKS, MAX_BYTES).await?;
        for snapshot in earlier {
            messages.extend(task::fold::into_task(&self.store.ids(), snapshot)?.history);
        }
        Ok(messages)
    }
}
