//! What was said in a conversation before the task at hand.

use std::sync::Arc;

use protocol::Message;

use crate::{error::Result, ids::TaskNo, scope::Scope, store::Store, task};

/// Reads earlier messages of a conversation, when an agent wants them.
#[derive(Clone)]
pub struct Conversation {
    store: Arc<dyn Store>,
    scope: Scope,
    /// The first task of the conversation, which names it inside.
    first: TaskNo,
    /// The task at hand; only earlier ones are read.
    before: TaskNo,
}

/// How many earlier tasks are looked at.
const MAX_TASKS: usize = 100;

impl Conversation {
    pub(crate) fn new(store: Arc<dyn Store>, scope: Scope, first: TaskNo, before: TaskNo) -> Self {
        Self { store, scope, first, before }
    }

    /// The messages of earlier tasks, oldest first. Nothing is read for the first task of a conversation.
    pub async fn messages(&self) -> Result<Vec<Message>> {
        if self.first == self.before {
            return Ok(Vec::new());
        }
        let mut messages = Vec::new();
        for snapshot in self.store.conversation(&self.scope, self.first, self.before, MAX_TASKS).await? {
            messages.extend(task::fold::snapshot(&self.store.ids(), &snapshot)?.history);
        }
        Ok(messages)
    }
}
