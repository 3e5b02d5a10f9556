//! Messages of a conversation (A2A context) that precede the current task.

use std::{collections::VecDeque, sync::Arc};

use protocol::{Message, Part, Role, Task};

use crate::{
    access::scope::Scope,
    agent::message_size,
    error::Result,
    ids::TaskNo,
    store::{Lookup, Snapshot, Store},
    task::{self, PublicIds},
};

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

/// How much of a conversation is read; the newest messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimit {
    /// Also the maximum number of earlier tasks that are read.
    pub messages: usize,
    /// In bytes, about as they are stored.
    pub size: usize,
}

impl Default for HistoryLimit {
    fn default() -> Self {
        Self { messages: 100, size: 1 << 20 }
    }
}

impl HistoryLimit {
    /// The newest messages that it allows; everything before the first one that does not fit is left out.
    fn newest(self, mut messages: Vec<Message>) -> Vec<Message> {
        let mut left = self.size as u64;
        let mut fits = |message: &&Message| {
            let rest = left.checked_sub(message_size(message));
            left = rest.unwrap_or_default();
            rest.is_some()
        };
        let kept = messages.iter().rev().take(self.messages).take_while(|message| fits(message)).count();
        messages.drain(..messages.len() - kept);
        messages
    }
}

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
        self.read(HistoryLimit::default()).await
    }

    /// The newest messages before those of the current task and these of it. A result of an earlier task is a message of its
    /// agent here, after those of its task.
    pub(crate) async fn before(&self, own: &[Message], limit: HistoryLimit) -> Result<Vec<Message>> {
        let mut messages = limit.newest(own.to_vec());
        let size: u64 = messages.iter().map(message_size).sum();
        if messages.len() == own.len() {
            let left = HistoryLimit {
                messages: limit.messages - messages.len(),
                size: limit.size.saturating_sub(usize::try_from(size).unwrap_or(usize::MAX)),
            };
            let earlier = left.newest(self.with_results(left).await?);
            messages.splice(..0, earlier);
        }
        Ok(messages)
    }

    async fn with_results(&self, limit: HistoryLimit) -> Result<Vec<Message>> {
        let ids = self.store.ids();
        let (mut messages, mut left) = (VecDeque::new(), limit.size as u64);
        for snapshot in self.snapshots(limit).await?.into_iter().rev() {
            let row = &snapshot.row;
            // A task with a larger result would not fit.
            let whole = if row.size <= left {
                let name = PublicIds::of(&ids, row).task;
                self.store.find(&self.scope, Lookup { ours: Some((row.no, row.tag)), name }).await?
            } else {
                None
            };
            let mut task = task::fold::into_task(&ids, whole.unwrap_or(snapshot))?;
            let result = result_message(&mut task);
            for message in task.history.into_iter().chain(result).rev() {
                left = left.saturating_sub(message_size(&message));
                messages.push_front(message);
            }
            if messages.len() >= limit.messages || left == 0 {
                break;
            }
        }
        Ok(messages.into())
    }

    async fn read(&self, limit: HistoryLimit) -> Result<Vec<Message>> {
        let mut messages = Vec::new();
        for snapshot in self.snapshots(limit).await? {
            messages.extend(task::fold::into_task(&self.store.ids(), snapshot)?.history);
        }
        Ok(messages)
    }

    /// The earlier tasks, oldest first, without their artifacts.
    async fn snapshots(&self, limit: HistoryLimit) -> Result<Vec<Snapshot>> {
        if self.first == self.before || limit.messages == 0 || limit.size == 0 {
            return Ok(Vec::new());
        }
        let HistoryLimit { messages: max, size } = limit;
        Ok(self.store.context_history(&self.scope, self.first, self.before, max, size).await?)
    }
}

/// The artifacts of a task as a message of its agent.
fn result_message(task: &mut Task) -> Option<Message> {
    let parts: Vec<Part> = task.artifacts.drain(..).flat_map(|artifact| artifact.parts).collect();
    let id = format!("{}-result", task.id);
    (!parts.is_empty()).then(|| Message {
        context_id: Some(task.context_id.clone()),
        task_id: Some(task.id.clone()),
        ..Message::new(id, Role::Agent, parts)
    })
}
