//! The deadline sweep: fails tasks whose deadline has passed while no process ran them, because they were queued, waited
//! for a retry or waited for their client. A run ends at the deadline by itself.
//!
//! The clock decides as it does for due work: when it is set ahead, tasks that no process runs fail too early, and
//! when it is set back, too late; a step is noticed within [`POLL_INTERVAL`].

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use protocol::Timestamp;
use tokio::sync::Notify;

use super::{Runner, time_limit::deadline_text};
use crate::{
    expire::expire,
    store::{StoreError, TaskRow},
    task::Reason,
};

/// Overdue tasks read at a time.
const BATCH: usize = 64;
/// The longest time between two sweeps: finds tasks whose run has ended at the deadline without a terminal state, and
/// changes of the clock.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// When the next sweep is planned, in milliseconds of the clock.
#[derive(Debug)]
pub(super) struct NextSweep {
    at: AtomicI64,
    earlier: Notify,
}

impl Default for NextSweep {
    fn default() -> Self {
        Self { at: AtomicI64::new(i64::MAX), earlier: Notify::new() }
    }
}

impl NextSweep {
    /// Plans a sweep at this time, unless one is planned before it. It may be called before the deadline is committed.
    pub(super) fn plan(&self, at: Timestamp) {
        if at.as_millis() < self.at.fetch_min(at.as_millis(), Ordering::SeqCst) {
            self.earlier.notify_one();
        }
    }
}

/// The background task of the sweep.
pub(super) struct DeadlineSweep {
    runner: Arc<Runner>,
}

impl DeadlineSweep {
    pub(super) fn new(runner: Arc<Runner>) -> Self {
        Self { runner }
    }

    /// Runs until graceful shutdown starts.
    pub(super) async fn run(self) {
        let Runner { next_sweep, clock, draining, .. } = &*self.runner;
        loop {
            // Before the read: deadlines that it does not find yet are planned meanwhile.
            next_sweep.at.store(i64::MAX, Ordering::SeqCst);
            match self.sweep().await {
                Ok(next) => next_sweep.plan(next),
                Err(error) => tracing::warn!(%error, "cannot fail overdue tasks"),
            }
            loop {
                let left = next_sweep.at.load(Ordering::SeqCst).saturating_sub(clock.now().as_millis());
                let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
                tokio::select! {
                    biased;
                    () = draining.cancelled() => return,
                    () = next_sweep.earlier.notified() => {}
                    () = tokio::time::sleep(left.min(POLL_INTERVAL)) => break,
                }
            }
        }
    }

    /// Fails all tasks that are overdue now; returns when the next may be.
    async fn sweep(&self) -> Result<Timestamp, StoreError> {
        let store = self.runner.store();
        let after = |now: Timestamp, span: Duration| {
            Timestamp::from_millis(
                now.as_millis().saturating_add(span.as_millis().try_into().unwrap_or(i64::MAX)),
            )
        };
        loop {
            let now = self.runner.clock().now();
            let overdue = store.overdue(now, BATCH).await?;
            let text = |row: &TaskRow| deadline_text(row.deadline.unwrap_or(now));
            let failed = expire(&**store, &overdue.tasks, Reason::Deadline, text, now).await?;
            for no in &failed {
                self.runner.slots(|scheduler| scheduler.cancel(*no));
            }
            // Without progress the next read would find the same tasks.
            if overdue.tasks.len() < BATCH || failed.is_empty() {
                return Ok(overdue.next.unwrap_or_else(|| after(now, POLL_INTERVAL)));
            }
        }
    }
}
