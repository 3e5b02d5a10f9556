//! Orders calls that lost a race for the same task, so that they try again one after the other.

use std::hash::{BuildHasher as _, RandomState};

use protocol::TaskId;
use tokio::sync::{Mutex, MutexGuard};

/// Number of queues. Tasks share them by hash; only calls that have lost a race ever wait in one.
const QUEUES: usize = 64;

/// Queues of calls that lost a race, first come, first served.
pub(crate) struct ContendedTasks {
    queues: [Mutex<()>; QUEUES],
    hasher: RandomState,
}

impl ContendedTasks {
    pub(crate) fn new() -> Self {
        Self { queues: std::array::from_fn(|_| Mutex::new(())), hasher: RandomState::new() }
    }

    /// Waits until earlier callers for this task have dropped their guards. Dropping the future leaves the queue.
    pub(crate) async fn wait_turn(&self, task: &TaskId) -> MutexGuard<'_, ()> {
        let hash = usize::try_from(self.hasher.hash_one(task.as_str()) % QUEUES as u64).unwrap_or_default();
        self.queues[hash].lock().await
    }
}
