//! Calls that stay open in a process while the client answers a question of the server.
//!
//! They are lost when this process or the server's ends. Clients may never answer, so they have a maximum age and number,
//! and give up their process when other calls need it, which `slots` decides.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use engine::{OpenQuestion, Scope};
use protocol::model::TaskId;
use tokio::time::Instant;

use super::{
    sdk::{Asked, OpenCall},
    server::{Lease, random},
    slots::oldest_of_most,
};

/// As long as a task may wait for its client by default.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Beyond it, the oldest of the principal with most of them is cancelled.
const MAX_PARKED: usize = 64;

/// The open calls that wait.
pub(super) struct Parked {
    /// Name of the server.
    server: String,
    /// Oldest first.
    entries: Mutex<Vec<Entry>>,
}

struct Entry {
    /// The task's id may be chosen by the client, so it is unique only within the scope.
    scope: Scope,
    task: TaskId,
    token: String,
    since: Instant,
    call: ParkedCall,
}

/// A call whose next event depends on an answer. Dropped, it is cancelled.
pub(super) struct ParkedCall {
    /// Before the lease, so that the cancellation is sent first.
    pub(super) open: OpenCall,
    pub(super) asked: Asked,
    pub(super) lease: Lease,
    /// To fail its task when the call is cancelled for another reason than the task's end.
    pub(super) question: Option<OpenQuestion>,
}

/// Why the answer of a client cannot be taken.
pub(super) fn lost_text(server: &str) -> String {
    format!(
        "the MCP server {server} no longer waits for the answer: its process has ended, or other calls needed it"
    )
}

impl Parked {
    pub(super) fn new(server: &str) -> Self {
        Self { server: server.to_owned(), entries: Mutex::default() }
    }

    /// Keeps a call; the token finds it again.
    pub(super) fn park(&self, scope: Scope, task: TaskId, call: ParkedCall) -> String {
        let token = format!("{:016x}", random());
        if call.question.is_some() {
            // A task asks one question at a time, unless the calls are those of its agent.
            drop(
                self.remove(|entry| {
                    entry.call.question.is_some() && entry.scope == scope && entry.task == task
                }),
            );
        }
        let mut entries = self.lock();
        let oldest = (entries.len() >= MAX_PARKED).then(|| {
            let asked: Vec<_> = entries.iter().map(|entry| (&entry.scope, entry.since)).collect();
            oldest_of_most(&asked).map(|at| entries.remove(at))
        });
        entries.push(Entry { scope, task, token: token.clone(), since: Instant::now(), call });
        drop(entries);
        self.lose(oldest.flatten());
        token
    }

    /// The call that waits for the answer of this task; `None`: it is lost.
    pub(super) fn take(&self, task: &TaskId, token: &str) -> Option<ParkedCall> {
        let mut entries = self.lock();
        let at = entries.iter().position(|entry| entry.task == *task && entry.token == token)?;
        let entry = entries.remove(at);
        drop(entries);
        Some(entry.call).filter(|call| !call.lease.endpoint().connection.is_closed())
    }

    /// Cancels the call of a task that was canceled.
    pub(super) fn abandon(&self, scope: &Scope, task: &TaskId) {
        // Dropped outside of the lock, here and below: this releases processes.
        drop(self.remove(|entry| entry.scope == *scope && entry.task == *task));
    }

    /// Cancels what is too old or has lost its connection.
    pub(super) fn expire(&self) {
        self.lose(self.remove(|entry| {
            entry.since.elapsed() > MAX_AGE || entry.call.lease.endpoint().connection.is_closed()
        }));
    }

    /// Cancels the call on a slot.
    pub(super) fn cancel(&self, slot: u64) {
        self.lose(self.remove(|entry| entry.call.lease.slot() == slot));
    }

    pub(super) fn clear(&self) {
        self.lose(self.remove(|_| true));
    }

    fn remove(&self, condition: impl FnMut(&mut Entry) -> bool) -> Vec<Entry> {
        self.lock().extract_if(.., condition).collect()
    }

    /// Cancels calls whose tasks still wait for an answer: they fail.
    fn lose(&self, entries: impl IntoIterator<Item = Entry>) {
        for question in entries.into_iter().filter_map(|entry| entry.call.question) {
            question.lose(lost_text(&self.server));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
