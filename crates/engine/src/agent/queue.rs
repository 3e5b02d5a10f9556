//! The updates of a run that are not committed yet: the agent's side sends, the runner's side takes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{Lost, Update};

/// Queue length at which [`UpdateSender::send`] waits.
const MAX_PENDING_UPDATES: usize = 256;

/// The agent's side.
#[derive(Clone)]
pub(crate) struct UpdateSender(Arc<Queue>);

/// The runner's side. The queue is closed when it is dropped.
pub(crate) struct UpdateReceiver(Arc<Queue>);

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    ready: Notify,
    space: Notify,
}

#[derive(Default)]
struct State {
    pending: Vec<Update>,
    closed: bool,
}

/// An empty queue.
pub(crate) fn queue() -> (UpdateSender, UpdateReceiver) {
    let queue = Arc::new(Queue::default());
    (UpdateSender(Arc::clone(&queue)), UpdateReceiver(queue))
}

impl UpdateSender {
    /// Sends updates that are committed together or not at all. Returns them if the queue is full.
    pub(crate) fn try_send(&self, updates: Vec<Update>) -> Result<Option<Vec<Update>>, Lost> {
        let rejected = self.0.try_put(updates)?;
        if rejected.is_none() {
            self.0.ready.notify_one();
        }
        Ok(rejected)
    }

    /// Like [`try_send`](Self::try_send), but waits while the queue is full (backpressure).
    ///
    /// Cancel safe: either all updates are in the queue or none.
    pub(crate) async fn send(&self, mut updates: Vec<Update>) -> Result<(), Lost> {
        loop {
            let mut space = std::pin::pin!(self.0.space.notified());
            // Registered before the length check, so that space freed in between is not missed.
            space.as_mut().enable();
            match self.try_send(updates)? {
                None => return Ok(()),
                Some(rejected) => updates = rejected,
            }
            space.await;
        }
    }
}

impl UpdateReceiver {
    /// Removes and returns all pending updates.
    pub(crate) fn take(&self) -> Vec<Update> {
        let pending = std::mem::take(&mut self.0.state().pending);
        if !pending.is_empty() {
            self.0.space.notify_waiters();
        }
        pending
    }

    /// Resolves when updates may be pending. Cancel safe.
    pub(crate) async fn ready(&self) {
        self.0.ready.notified().await;
    }

    /// Rejects all further updates with [`Lost`].
    pub(crate) fn close(&self) {
        self.0.state().closed = true;
        self.0.space.notify_waiters();
    }
}

impl Drop for UpdateReceiver {
    fn drop(&mut self) {
        self.close();
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_put(&self, updates: Vec<Update>) -> Result<Option<Vec<Update>>, Lost> {
        let mut state = self.state();
        if state.closed {
            return Err(Lost);
        }
        if state.pending.len() >= MAX_PENDING_UPDATES {
            return Ok(Some(updates));
        }
        if state.pending.is_empty() {
            state.pending = updates;
        } else {
            state.pending.extend(updates);
        }
        Ok(None)
    }
}
