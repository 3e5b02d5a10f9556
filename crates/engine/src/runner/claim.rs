//! The claimer: claims and runs work that got a slot, and reads due work from the store.
//!
//! What this process queues, the scheduler knows at once. The store is read at the start, because earlier processes
//! have left work, and then every few seconds, so that nothing is lost if the scheduler misses it.

use std::{sync::Arc, time::Duration};

use protocol::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Runner, Slot,
    claimed::{Probation, run_claimed},
    scheduler::Grant,
    slot::ProbationPermit,
};
use crate::store::{Advance, Change, Due, NotCommitted, Receipt, Step, TaskRow, Visibility};

/// Due tasks read at a time, at least.
const MIN_BATCH: usize = 1_024;
/// How often the store is read.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two reads: for any read, and for each row of the first one.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
const MIN_INTERVAL_PER_ROW: Duration = Duration::from_micros(100);

/// The background task that claims work.
pub(super) struct Claimer {
    runner: Arc<Runner>,
    /// When the store is read next.
    read_at: Instant,
    /// The store may have more due work than was read.
    incomplete: bool,
}

impl Claimer {
    pub(super) fn new(runner: Arc<Runner>) -> Self {
        Self { runner, read_at: Instant::now(), incomplete: false }
    }

    /// Runs until graceful shutdown starts.
    pub(super) async fn run(mut self) {
        let draining = self.runner.draining.clone();
        while !draining.is_cancelled() {
            if self.must_read() {
                self.read().await;
            }
            self.runner.update_limits();
            let now = self.runner.clock().now();
            let next = self.runner.slots(|scheduler| scheduler.promote(now));
            self.claim_granted();
            let wake_at = next.map_or(self.read_at, |at| self.read_at.min(Instant::now() + until(at, now)));
            tokio::select! {
                biased;
                () = draining.cancelled() => {}
                () = self.runner.wake.notified() => {}
                () = tokio::time::sleep_until(wake_at) => {}
            }
        }
    }

    fn must_read(&self) -> bool {
        let is_low = || self.runner.slots(|scheduler| scheduler.waiting()) < self.batch() / 2;
        Instant::now() >= self.read_at || self.incomplete && is_low()
    }

    /// How many due tasks are read at a time: more than wait, unless an earlier process allowed more.
    fn batch(&self) -> usize {
        self.runner.limits().queued.saturating_add(MIN_BATCH)
    }

    /// Reads due work from the store.
    async fn read(&mut self) {
        self.read_at = Instant::now() + POLL_INTERVAL;
        self.runner.slots(|scheduler| scheduler.begin_read());
        let now = self.runner.clock().now();
        let read = self.runner.store().due(now, self.batch()).await;
        let due = read.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read due work");
            Due::default()
        });
        self.incomplete = due.tasks.len() >= self.batch();
        self.runner.slots(|scheduler| scheduler.finish_read(&due.tasks, now));
        if let Some(next) = due.next {
            let rows = u32::try_from(due.tasks.len()).unwrap_or(u32::MAX);
            let wait = until(next, now).max(MIN_INTERVAL + MIN_INTERVAL_PER_ROW * rows);
            self.read_at = self.read_at.min(Instant::now() + wait);
        }
        self.end_overdue(due.overdue);
    }

    /// Ends tasks whose deadline has passed while no process ran them.
    fn end_overdue(&self, _overdue: Vec<TaskRow>) {}

    /// Claims the work that got slots. All claims are queued before the first is durable, so that they share a sync.
    fn claim_granted(&self) {
        for grant in self.runner.slots(|scheduler| scheduler.take_granted()) {
            let registration = self.runner.register(grant.no, CancellationToken::new());
            let slot = Slot::granted(&self.runner, &grant);
            let permit = ProbationPermit::granted(&self.runner, &grant);
            let receipt = self.claim(&grant);
            let runner = Arc::clone(&self.runner);
            self.runner.tracker.spawn(async move {
                let result = receipt.await;
                runner.slots(|scheduler| scheduler.finish_claim(grant.no));
                match result {
                    Ok(claimed) => {
                        let start = |permit| Probation::start(&runner, grant.no, claimed.fence, permit);
                        let probation = permit.map(start);
                        run_claimed(&runner, slot, registration, grant.no, claimed, probation).await;
                    }
                    // The task was canceled or has expired while it waited.
                    Err(NotCommitted::Conflict(_)) => {}
                    // The next read of due work finds the task again.
                    Err(error) => tracing::warn!(no = grant.no.0, ?error, "cannot claim due work"),
                }
            });
        }
    }

    fn claim(&self, grant: &Grant) -> Receipt {
        let claim = Advance {
            // A task that was queued or survived a crash is visible for good.
            visibility: Some(Visibility::Visible),
            ..Advance::new(grant.no, Step::Claim { probation: grant.probation })
        };
        self.runner.store().commit(Change::Advance(Box::new(claim)))
    }
}

/// The time from `now` to `at`, at least a millisecond.
fn until(at: Timestamp, now: Timestamp) -> Duration {
    let millis = at.as_millis().saturating_sub(now.as_millis()).max(1);
    Duration::from_millis(millis.cast_unsigned())
}
