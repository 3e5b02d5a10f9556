//! The claimer: claims and runs due work that no process holds.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::{Runner, claimed::run_claimed};
use crate::{
    ids::TaskNo,
    store::{Advance, Change, Committed, NotCommitted, OVERLOADED, Step, StoreError, Visibility},
};

/// Due tasks read at a time.
const CLAIM_BATCH: usize = 64;
/// How often the store is polled when there is no wake-up.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The background task that claims due work while slots are free.
pub(super) struct Claimer {
    runner: Arc<Runner>,
}

impl Claimer {
    pub(super) fn new(runner: Arc<Runner>) -> Self {
        Self { runner }
    }

    /// Runs until graceful shutdown starts.
    pub(super) async fn run(self) {
        let draining = self.runner.draining.clone();
        loop {
            let wait = self.claim_due().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot read due work");
                POLL_INTERVAL
            });
            tokio::select! {
                biased;
                () = draining.cancelled() => return,
                () = self.runner.wake.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Claims due work while there are slots; returns how long to wait until the next poll.
    async fn claim_due(&self) -> Result<Duration, StoreError> {
        loop {
            // Set before reading: a slot freed after the read then wakes the claimer.
            self.runner.slot_wanted.store(true, Ordering::SeqCst);
            if self.runner.slots.available_permits() == 0 || self.runner.draining.is_cancelled() {
                return Ok(POLL_INTERVAL);
            }
            let now = self.runner.clock().now();
            let due = self.runner.store().due(now, CLAIM_BATCH).await?;
            let suspect = due.tasks.iter().find(|task| task.suspect).map(|task| task.no);
            let suspect = self.suspect(suspect);
            let regular: Vec<_> = due.tasks.iter().filter(|task| !task.suspect).map(|task| task.no).collect();
            if regular.is_empty() && suspect.is_none() {
                self.runner.slot_wanted.store(false, Ordering::SeqCst);
                let next = due.next.map(|at| at.as_millis().saturating_sub(now.as_millis()));
                return Ok(next.map_or(POLL_INTERVAL, |millis| {
                    Duration::from_millis(millis.max(1).cast_unsigned()).min(POLL_INTERVAL)
                }));
            }
            let regular = regular.into_iter().map(|task| (task, None));
            for (task, permit) in regular.chain(suspect) {
                let Some(slot) = self.runner.slot() else { break };
                let registration = self.runner.register(task, CancellationToken::new());
                // Awaited before the next read, so that no task is claimed twice.
                if let Some(committed) = self.claim(task, permit.is_some()).await? {
                    let runner = Arc::clone(&self.runner);
                    self.runner.tracker.spawn(async move {
                        // Held to the end of the run: other suspects wait for it.
                        let _alone = permit;
                        run_claimed(&runner, slot, registration, task, committed).await;
                    });
                }
            }
        }
    }

    /// The next suspect, if none runs. Tasks that were running when processes crashed run one at a time, so
    /// that the next crash identifies the task that causes it.
    fn suspect(&self, task: Option<TaskNo>) -> Option<(TaskNo, Option<SuspectPermit>)> {
        let permit = Arc::clone(&self.runner.suspects).try_acquire_owned().ok()?;
        task.map(|task| {
            (task, Some(SuspectPermit { permit: Some(permit), runner: Arc::clone(&self.runner) }))
        })
    }

    async fn claim(&self, no: TaskNo, probation: bool) -> Result<Option<Committed>, StoreError> {
        let claim = Advance {
            // A task that was queued or survived a crash is visible for good.
            visibility: Some(Visibility::Visible),
            ..Advance::new(no, Step::Claim { probation })
        };
        match self.runner.store().commit(Change::Advance(Box::new(claim))).await {
            Ok(committed) => Ok(Some(committed)),
            Err(NotCommitted::Conflict(_) | NotCommitted::KeyUsed(_)) => Ok(None),
            Err(NotCommitted::Unavailable(reason) | NotCommitted::TooLarge(reason)) => {
                Err(StoreError::Unavailable(reason))
            }
            Err(NotCommitted::Overloaded) => Err(StoreError::Unavailable(OVERLOADED.into())),
        }
    }
}

/// The permit of the running suspect; releasing it wakes the claimer.
struct SuspectPermit {
    permit: Option<OwnedSemaphorePermit>,
    runner: Arc<Runner>,
}

impl Drop for SuspectPermit {
    fn drop(&mut self) {
        self.permit = None;
        self.runner.wake();
    }
}
