//! The updates of a run that are not committed yet: the agent's side sends, the runner's side takes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{Lost, Update};

/// Queue length at which [`UpdateSender::send`] waits.
const MAX_PENDING_UPDATES: usize = 256;
/// Bytes in the queue at which [`UpdateSender::send`] waits.
const MAX_PENDING_BYTES: u64 = 1 << 20;

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
    /// Approximate size of `pending`.
    bytes: u64,
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
        let pending = {
            let mut state = self.0.state();
            state.bytes = 0;
            std::mem::take(&mut state.pending)
        };
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
        if state.pending.len() >= MAX_PENDING_UPDATES || state.bytes >= MAX_PENDING_BYTES {
            return Ok(Some(updates));
        }
        state.bytes += updates.iter().map(Update::queued_size).sum::<u64>();
        if state.pending.is_empty() {
            state.pending = updates;
        } else {
            state.pending.extend(updates);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_accepted(sender: &UpdateSender, bytes: usize) -> bool {
        matches!(sender.try_send(vec![Update::Save(vec![0; bytes].into())]), Ok(None))
    }

    #[test]
    fn queue_is_bounded_in_updates_and_in_bytes() {
        let (sender, receiver) = queue();
        // A single large update is accepted, and then nothing until it is taken.
        assert!(is_accepted(&sender, 5 << 20));
        assert!(!is_accepted(&sender, 1));
        assert_eq!(receiver.take().len(), 1);
        let small = (0..1_000).take_while(|_| is_accepted(&sender, 1)).count();
        assert_eq!(small, MAX_PENDING_UPDATES);
        receiver.take();
        let large = (0..1_000).take_while(|_| is_accepted(&sender, 100 << 10)).count();
        assert_eq!(large, 11);
    }
}
