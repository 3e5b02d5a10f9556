//! The updates of a run that are not committed yet: the agent's side sends, the runner's side takes and acknowledges.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{AgentError, Lost, Update, call_output::CallOutput};

/// Queue length at which [`UpdateSender::send`] waits.
const MAX_PENDING_UPDATES: usize = 256;
/// Bytes in the queue at which [`UpdateSender::send`] waits.
const MAX_PENDING_BYTES: u64 = 1 << 20;
/// Bytes of output that is held at which the turn fails.
const MAX_HELD_BYTES: u64 = 16 << 20;

/// The agent's side.
#[derive(Clone)]
pub(crate) struct UpdateSender {
    queue: Arc<Queue>,
    /// Of a skill that other work of the task has called: its output is for the caller.
    call: Option<Arc<CallOutput>>,
}

/// The runner's side. The queue is closed when it is dropped.
pub(crate) struct UpdateReceiver(Arc<Queue>);

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    ready: Notify,
    space: Notify,
    /// Notified when a batch that is waited for is committed, and when the queue is closed.
    commits: Notify,
}

#[derive(Default)]
struct State {
    pending: Vec<Update>,
    /// Approximate size of `pending`.
    bytes: u64,
    /// Batches sent, taken and committed so far. All pending batches are taken at once, and the next ones only when
    /// these are committed.
    sent: u64,
    taken: u64,
    committed: u64,
    /// A sender waits for a commit.
    awaited: bool,
    /// Output stays in `pending` with the checkpoints that belong to it.
    holds_output: bool,
    /// Why the agent's side has ended the turn.
    failure: Option<AgentError>,
    closed: bool,
}

/// The result of [`UpdateSender::try_send`].
pub(crate) enum Offered {
    /// The updates are in the queue, as the batch with this number.
    Queued(u64),
    /// The queue is full.
    Full(Vec<Update>),
}

/// An empty queue.
pub(crate) fn queue() -> (UpdateSender, UpdateReceiver) {
    let queue = Arc::new(Queue::default());
    (UpdateSender { queue: Arc::clone(&queue), call: None }, UpdateReceiver(queue))
}

impl UpdateSender {
    /// The same queue for a called skill, whose output is kept there.
    pub(crate) fn for_call(&self, call: Arc<CallOutput>) -> Self {
        Self { queue: Arc::clone(&self.queue), call: Some(call) }
    }

    /// Sends updates that are committed together or not at all, unless the queue is full.
    pub(crate) fn try_send(&self, updates: Vec<Update>) -> Result<Offered, Lost> {
        let Some(call) = &self.call else { return self.put(updates) };
        let updates = call.take(updates)?;
        let steps = Update::steps(&updates);
        let offered = if updates.is_empty() { self.queue.pass()? } else { self.put(updates)? };
        if let Offered::Queued(batch) = offered {
            call.sent(steps, batch);
        }
        Ok(offered)
    }

    fn put(&self, updates: Vec<Update>) -> Result<Offered, Lost> {
        let offered = self.queue.try_put(updates)?;
        if matches!(offered, Offered::Queued(_)) {
            self.queue.ready.notify_one();
        }
        Ok(offered)
    }

    /// Like [`try_send`](Self::try_send), but waits while the queue is full (backpressure). Returns the batch's number.
    ///
    /// Cancel safe: either all updates are in the queue or none.
    pub(crate) async fn send(&self, mut updates: Vec<Update>) -> Result<u64, Lost> {
        loop {
            let mut space = std::pin::pin!(self.queue.space.notified());
            // Registered before the length check, so that space freed in between is not missed.
            space.as_mut().enable();
            match self.try_send(updates)? {
                Offered::Queued(batch) => return Ok(batch),
                Offered::Full(rejected) => updates = rejected,
            }
            space.await;
        }
    }

    /// Resolves when the batch with this number is committed. Cancel safe.
    pub(crate) async fn committed(&self, batch: u64) -> Result<(), Lost> {
        loop {
            let mut commits = std::pin::pin!(self.queue.commits.notified());
            // Registered before the check, so that a commit in between is not missed.
            commits.as_mut().enable();
            {
                let mut state = self.queue.state();
                if state.committed >= batch {
                    return Ok(());
                }
                if state.closed {
                    return Err(Lost);
                }
                state.awaited = true;
            }
            commits.await;
        }
    }

    /// From now on artifacts and checkpoints are not taken. Who waits for their commit does not wait: after a crash the turn
    /// goes on from what was recorded before.
    pub(crate) fn hold_output(&self) {
        // The output of a call is not in the queue.
        if self.call.is_none() {
            self.queue.state().holds_output = true;
        }
    }

    /// What was held can be taken.
    pub(crate) fn release_output(&self) {
        if self.call.is_none() && std::mem::take(&mut self.queue.state().holds_output) {
            self.queue.ready.notify_one();
        }
    }

    /// Ends the turn, or the call, with an error of the agent, whatever the agent returns.
    pub(crate) fn fail(&self, error: AgentError) {
        if let Some(call) = &self.call {
            return call.fail(error);
        }
        let mut state = self.queue.state();
        if !state.closed {
            state.failure = Some(error);
        }
        drop(state);
        self.queue.close();
        self.queue.ready.notify_one();
    }
}

impl UpdateReceiver {
    /// Removes and returns all pending updates, and the error with which the agent's side has ended the turn.
    pub(crate) fn take(&self) -> (Vec<Update>, Option<AgentError>) {
        let (pending, failure) = {
            let mut state = self.0.state();
            state.taken = state.sent;
            let mut pending = std::mem::take(&mut state.pending);
            if state.holds_output {
                let is_held =
                    |update: &mut Update| matches!(update, Update::Artifact { .. } | Update::Save(_));
                state.pending = pending.extract_if(.., is_held).collect();
            }
            state.bytes = state.pending.iter().map(Update::queued_size).sum();
            (pending, state.failure.take())
        };
        if !pending.is_empty() {
            self.0.space.notify_waiters();
        }
        (pending, failure)
    }

    /// What was taken is committed.
    pub(crate) fn committed(&self) {
        let awaited = {
            let mut state = self.0.state();
            state.committed = state.taken;
            std::mem::take(&mut state.awaited)
        };
        if awaited {
            self.0.commits.notify_waiters();
        }
    }

    /// Resolves when updates may be pending. Cancel safe.
    pub(crate) async fn ready(&self) {
        self.0.ready.notified().await;
    }

    /// Rejects all further updates with [`Lost`].
    pub(crate) fn close(&self) {
        self.0.close();
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

    fn try_put(&self, updates: Vec<Update>) -> Result<Offered, Lost> {
        let mut state = self.state();
        if state.closed {
            return Err(Lost);
        }
        if state.holds_output && state.bytes >= MAX_HELD_BYTES {
            let text =
                format!("a guard judges the whole output, and it is larger than {MAX_HELD_BYTES} bytes");
            state.failure = Some(AgentError::new(text));
            drop(state);
            self.close();
            self.ready.notify_one();
            return Err(Lost);
        }
        let is_full = state.pending.len() >= MAX_PENDING_UPDATES || state.bytes >= MAX_PENDING_BYTES;
        if is_full && !state.holds_output {
            return Ok(Offered::Full(updates));
        }
        state.bytes += updates.iter().map(Update::queued_size).sum::<u64>();
        if state.pending.is_empty() {
            state.pending = updates;
        } else {
            state.pending.extend(updates);
        }
        state.sent += 1;
        Ok(Offered::Queued(state.sent))
    }

    /// A batch without updates: there is nothing to wait for.
    fn pass(&self) -> Result<Offered, Lost> {
        if self.state().closed { Err(Lost) } else { Ok(Offered::Queued(0)) }
    }

    fn close(&self) {
        if !std::mem::replace(&mut self.state().closed, true) {
            self.space.notify_waiters();
            self.commits.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_accepted(sender: &UpdateSender, bytes: usize) -> bool {
        matches!(sender.try_send(vec![Update::Save(vec![0; bytes].into())]), Ok(Offered::Queued(_)))
    }

    #[test]
    fn queue_is_bounded_in_updates_and_in_bytes() {
        let (sender, receiver) = queue();
        // A single large update is accepted, and then nothing until it is taken.
        assert!(is_accepted(&sender, 5 << 20));
        assert!(!is_accepted(&sender, 1));
        assert_eq!(receiver.take().0.len(), 1);
        let small = (0..1_000).take_while(|_| is_accepted(&sender, 1)).count();
        assert_eq!(small, MAX_PENDING_UPDATES);
        receiver.take();
        let large = (0..1_000).take_while(|_| is_accepted(&sender, 100 << 10)).count();
        assert_eq!(large, 11);
    }

    fn save() -> Vec<Update> {
        vec![Update::Save(vec![1].into())]
    }

    #[tokio::test]
    async fn sender_waits_for_its_own_batch() {
        let (sender, receiver) = queue();
        let first = sender.send(save()).await.unwrap();
        receiver.take();
        let second = sender.send(save()).await.unwrap();
        receiver.committed();
        assert_eq!(sender.committed(first).await, Ok(()));
        let mut waits = poller(sender.committed(second));
        assert!(waits().is_none());
        // The second batch was not part of that commit.
        receiver.committed();
        assert!(waits().is_none());
        receiver.take();
        receiver.committed();
        assert_eq!(waits(), Some(Ok(())));
    }

    #[tokio::test]
    async fn closed_queue_loses_what_is_not_committed() {
        let (sender, receiver) = queue();
        let first = sender.send(save()).await.unwrap();
        receiver.take();
        receiver.committed();
        let second = sender.send(save()).await.unwrap();
        let mut waits = poller(sender.committed(second));
        assert!(waits().is_none());
        receiver.close();
        assert_eq!(waits(), Some(Err(Lost)));
        assert_eq!(sender.committed(first).await, Ok(()));
        assert!(sender.send(save()).await.is_err());
    }

    #[tokio::test]
    async fn failure_closes_the_queue_and_keeps_what_was_sent() {
        let (sender, receiver) = queue();
        sender.send(save()).await.unwrap();
        sender.fail(AgentError::new("no"));
        sender.fail(AgentError::new("later"));
        assert!(sender.send(save()).await.is_err());
        receiver.ready().await;
        let (updates, failure) = receiver.take();
        assert_eq!((updates.len(), failure.unwrap().to_string().as_str()), (1, "no"));
    }

    /// Polls a future once per call; `None` while it is pending.
    fn poller<F: Future>(future: F) -> impl FnMut() -> Option<F::Output> {
        let mut future = Box::pin(future);
        move || {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            match future.as_mut().poll(&mut context) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            }
        }
    }
}
