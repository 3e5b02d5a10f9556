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
    claimed::{run_claimed, select_skill},
    scheduler::Scheduler,
    slot::ProbationPermit,
};
use crate::store::{Advance, Change, Due, NotCommitted, ReadFuture, Receipt, StoreError, Visibility};

/// Due tasks read at a time, at least.
const MIN_BATCH: usize = 1_024;
/// How often the store is read.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two reads, and how much longer it is for each row that was read.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
const MIN_INTERVAL_PER_ROW: Duration = Duration::from_micros(100);
/// How soon a read that failed is repeated.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The background task that claims work.
pub(super) struct Claimer {
    runner: Arc<Runner>,
    /// A read of the store, with the time it reads for. Work is claimed meanwhile.
    reading: Option<(Timestamp, ReadFuture<Due>)>,
    /// When the last read ended.
    last_read: Instant,
    /// When the store is read next.
    read_at: Instant,
    /// The store may have more due work than was read.
    incomplete: bool,
}

impl Claimer {
    pub(super) fn new(runner: Arc<Runner>) -> Self {
        let now = Instant::now();
        Self { runner, reading: None, last_read: now, read_at: now, incomplete: false }
    }

    /// Runs until graceful shutdown starts.
    pub(super) async fn run(mut self) {
        let draining = self.runner.draining.clone();
        let mut changes = self.runner.catalog().changes();
        while !draining.is_cancelled() {
            self.runner.update_limits();
            if self.reading.is_none() && self.must_read() {
                self.begin_read();
            }
            let now = self.runner.clock().now();
            let next = self.runner.slots(|scheduler| scheduler.promote(now));
            self.claim_granted();
            let wake_at =
                next.map_or(self.next_read(), |at| self.next_read().min(Instant::now() + until(at, now)));
            tokio::select! {
                biased;
                () = draining.cancelled() => {}
                (now, read) = read_result(&mut self.reading) => self.finish_read(now, read),
                Ok(()) = changes.changed() => self.runner.slots(Scheduler::retry_unselected),
                () = self.runner.wake.notified() => {}
                () = tokio::time::sleep_until(wake_at) => {}
            }
        }
        self.runner.set_loaded();
    }

    fn must_read(&self) -> bool {
        Instant::now() >= self.next_read()
    }

    /// When the store is read next; soon if it has more due work than was read, and little of it is left.
    fn next_read(&self) -> Instant {
        let is_low = || self.runner.slots(|scheduler| scheduler.waiting()) < self.batch() / 2;
        if self.reading.is_some() {
            Instant::now() + POLL_INTERVAL
        } else if self.incomplete && is_low() {
            self.read_at.min(self.last_read + MIN_INTERVAL)
        } else {
            self.read_at
        }
    }

    /// How many due tasks are read at a time: more than wait, unless an earlier process allowed more.
    fn batch(&self) -> usize {
        self.runner.limits().queued.saturating_add(MIN_BATCH)
    }

    /// Begins to read due work from the store.
    fn begin_read(&mut self) {
        self.runner.slots(|scheduler| scheduler.begin_read());
        let now = self.runner.clock().now();
        self.reading = Some((now, self.runner.store().due(now, self.batch())));
    }

    fn finish_read(&mut self, now: Timestamp, read: Result<Due, StoreError>) {
        let due = match read {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "cannot read due work");
                self.read_at = Instant::now() + RETRY_INTERVAL;
                return self.runner.slots(|scheduler| scheduler.abandon_read());
            }
        };
        self.last_read = Instant::now();
        self.read_at = self.last_read + POLL_INTERVAL;
        self.incomplete = due.tasks.len() >= self.batch();
        self.runner
            .slots(|scheduler| scheduler.finish_read(&due.tasks, now, |task| self.runner.asking(task)));
        self.runner.set_loaded();
        if let Some(next) = due.next {
            let rows = u32::try_from(due.tasks.len()).unwrap_or(u32::MAX);
            let wait = until(next, now).max(MIN_INTERVAL + MIN_INTERVAL_PER_ROW * rows);
            self.read_at = self.read_at.min(Instant::now() + wait);
        }
    }

    /// Claims the work that got slots. All claims are queued before the first is durable, so that they share a sync; only
    /// work whose skill has to be selected is read before its claim.
    fn claim_granted(&self) {
        for grant in self.runner.slots(|scheduler| scheduler.take_granted()) {
            let registration = self.runner.register(grant.no, CancellationToken::new());
            let slot = Slot::granted(&self.runner, &grant);
            let permit = ProbationPermit::granted(&self.runner, &grant);
            let is_selected = grant.skill_by.is_none() || grant.probation;
            let receipt = is_selected.then(|| claim(&self.runner, Advance::new(grant.no, grant.step())));
            let runner = Arc::clone(&self.runner);
            self.runner.tracker.spawn(async move {
                let (mut slot, receipt) = match receipt {
                    Some(receipt) => (slot, receipt),
                    None => match select_skill(&runner, slot, grant).await {
                        Some((slot, change)) => (slot, claim(&runner, change)),
                        None => return,
                    },
                };
                let result = receipt.await;
                slot.asking = runner.slots(|scheduler| scheduler.finish_claim(grant.no));
                match result {
                    Ok(claimed) => {
                        run_claimed(&runner, slot, registration, grant, claimed, permit).await;
                    }
                    // The task was canceled or has expired while it waited.
                    Err(NotCommitted::Conflict(_)) => {}
                    // The next read of due work finds the task again.
                    Err(error) => {
                        let error = crate::Error::from(error);
                        tracing::warn!(no = grant.no.0, %error, "cannot claim due work");
                    }
                }
            });
        }
    }
}

fn claim(runner: &Runner, change: Advance) -> Receipt {
    // A task that was queued or survived a crash is visible for good.
    let change = Advance { visibility: Some(Visibility::Visible), ..change };
    runner.store().commit(Change::Advance(Box::new(change)))
}

/// The result of the read in progress; never, if there is none.
async fn read_result(
    reading: &mut Option<(Timestamp, ReadFuture<Due>)>,
) -> (Timestamp, Result<Due, StoreError>) {
    let Some((now, read)) = reading else { return std::future::pending().await };
    let result = (*now, read.await);
    *reading = None;
    result
}

/// The time from `now` to `at`, at least a millisecond.
fn until(at: Timestamp, now: Timestamp) -> Duration {
    let millis = at.as_millis().saturating_sub(now.as_millis()).max(1);
    Duration::from_millis(millis.cast_unsigned())
}
