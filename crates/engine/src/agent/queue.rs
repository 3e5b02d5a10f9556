//! The updates of a run that are not committed yet: the agent's side sends, the runner's side takes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{Lost, Update};

/// Queue length at which [`UpdateSender::send`] starts to wait.
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
    /// Sends updates that are committed together or not at all. Waits while the queue is full (backpressure).
    ///
    /// Cancel safe: either all updates are in the queue or none.
    pub(crate) async fn send(&self, updates: Vec<Update>) -> Result<(), Lost> {
        let mut updates = Some(updates);
        loop {
            let mut space = std::pin::pin!(self.0.space.notified());
            // Registered before the length check, so that space freed in between is not missed.
            space.as_mut().enable();
            if self.0.try_put(&mut updates)? {
                self.0.ready.notify_one();
                return Ok(());
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

    fn try_put(&self, updates: &mut Option<Vec<Update>>) -> Result<bool, Lost> {
        let mut state = self.state();
        if state.closed {
            return Err(Lost);
        }
        let fits = state.pending.len() < MAX_PENDING_UPDATES;
        if fits {
            state.pending.extend(updates.take().unwrap_or_default());
        }
        Ok(fits)
    }
}
