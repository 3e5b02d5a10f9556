//! Calls that stay open in a process while the client answers a question of the server.
//!
//! They are lost when this process or the server's ends. Clients may never answer, so they have a maximum age and number,
//! and give up their process when other calls need it, which `slots` decides.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use engine::Scope;
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

/// The open calls that wait, oldest first.
#[derive(Default)]
pub(super) struct Parked(Mutex<Vec<Entry>>);

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
}

impl Parked {
    /// Keeps a call; the token finds it again.
    pub(super) fn park(&self, scope: Scope, task: TaskId, call: ParkedCall) -> String {
        let token = format!("{:016x}", random());
        let mut entries = self.lock();
        let oldest = (entries.len() >= MAX_PARKED).then(|| {
            let asked: Vec<_> = entries.iter().map(|entry| (&entry.scope, entry.since)).collect();
            oldest_of_most(&asked).map(|at| entries.remove(at))
        });
        entries.push(Entry { scope, task, token: token.clone(), since: Instant::now(), call });
        drop(entries);
        drop(oldest);
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
        self.remove(|entry| entry.scope == *scope && entry.task == *task);
    }

    /// Cancels what is too old or has lost its connection.
    pub(super) fn expire(&self) {
        self.remove(|entry| {
            entry.since.elapsed() > MAX_AGE || entry.call.lease.endpoint().connection.is_closed()
        });
    }

    /// Cancels the call on a slot.
    pub(super) fn cancel(&self, slot: u64) {
        self.remove(|entry| entry.call.lease.slot() == slot);
    }

    pub(super) fn clear(&self) {
        self.remove(|_| true);
    }

    fn remove(&self, condition: impl FnMut(&mut Entry) -> bool) {
        let removed: Vec<_> = self.lock().extract_if(.., condition).collect();
        // Outside of the lock: this releases processes.
        drop(removed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
