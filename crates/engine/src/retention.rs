//! Retention: how long finished tasks are kept, and the background task that purges them.
//!
//! A finished task is purged when it is older than `max_age` or when there are more than `max_tasks`. Its row
//! stays longer, so that duplicates of its messages are still detected. A task that waits for its client
//! longer than its `interrupted_ttl` fails. Other open tasks are never touched. A purge is a small batch, one at a time,
//! queued behind live work. Tasks expire by a time of their own ([`time`]), so that a wrong clock purges
//! nothing.

mod time;

use std::{sync::Arc, time::Duration};

use protocol::Timestamp;
use tokio_util::sync::CancellationToken;

use self::time::{ClockJump, RetentionTime};
use crate::{
    catalog::{Catalog, CurrentCatalog},
    clock::Clock,
    expire::expire,
    runner::Limits,
    store::{Expiry, Store, StoreError, TaskRow, TenantAgent, WaitingSince},
    task::Reason,
};

/// Retention settings of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Time from the terminal state until the task is purged.
    pub max_age: Duration,
    /// How many finished tasks are kept; the oldest are purged first. Also the maximum number of open tasks:
    /// beyond it new ones are rejected.
    pub max_tasks: Option<u64>,
    /// How long the idempotency keys of a purged task are kept, so that duplicates of its messages do not
    /// start a new task.
    pub keys: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for Retention {
    fn default() -> Self {
        Self { max_age: DAY, max_tasks: None, keys: DAY }
    }
}

/// Tasks per batch.
const PURGE_BATCH: usize = 64;
/// Shortest and longest interval between batches.
const INTERVAL_RANGE: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(250)..=Duration::from_secs(30);

/// Longest interval where the number of tasks is limited: any task that ends can be one too many.
const COUNT_INTERVAL: Duration = Duration::from_secs(2);

/// The background task that purges expired tasks.
pub(crate) struct Purger {
    store: Arc<dyn Store>,
    catalog: CurrentCatalog,
    clock: Clock,
    limits: Limits,
    /// `None` until it has been read from the store.
    time: Option<RetentionTime>,
}

impl Purger {
    pub(crate) fn new(store: Arc<dyn Store>, catalog: CurrentCatalog, clock: Clock, limits: Limits) -> Self {
        Self { store, catalog, clock, limits, time: None }
    }

    /// Runs until graceful shutdown starts.
    pub(crate) async fn run(mut self, draining: CancellationToken) {
        loop {
            // A purge can be left at any time: the store continues it.
            let purged = tokio::select! {
                biased;
                () = draining.cancelled() => break,
                purged = self.purge_batch() => purged,
            };
            let busy = match purged {
                Ok(busy) => busy,
                Err(error) => {
                    tracing::warn!(%error, "cannot read expired tasks");
                    false
                }
            };
            let interval = if busy { Duration::ZERO } else { self.interval() };
            tokio::select! {
                biased;
                () = draining.cancelled() => break,
                () = tokio::time::sleep(interval) => {}
            }
        }
        if let Some(time) = self.time {
            self.store.record_retention(time.mark());
        }
    }

    /// The time by which tasks expire now; recorded once a minute.
    async fn retention_time(&mut self) -> Result<Timestamp, StoreError> {
        let (system, elapsed) = (self.clock.now(), self.clock.elapsed());
        let time = match &mut self.time {
            Some(time) => time,
            None => {
                let mark = self.store.retention_mark().await?;
                self.time.insert(RetentionTime::start(mark, system, elapsed))
            }
        };
        if let Some(jump) = time.follow(system, elapsed) {
            report(jump);
        }
        if let Some(mark) = time.due_mark() {
            self.store.record_retention(mark);
        }
        Ok(time.now())
    }

    /// A twentieth of the shortest retention time, and not long where the number of tasks is limited.
    fn interval(&self) -> Duration {
        let catalog = self.catalog.load();
        let retentions = catalog.retentions().map(|Retention { max_age, keys, .. }| max_age.min(keys));
        let shortest = retentions.chain(catalog.interrupted_ttls()).chain([self.limits.interrupted_ttl]);
        let longest = if catalog.retentions().any(|retention| retention.max_tasks.is_some()) {
            COUNT_INTERVAL
        } else {
            *INTERVAL_RANGE.end()
        };
        (shortest.min().unwrap_or(DAY) / 20).clamp(*INTERVAL_RANGE.start(), longest)
    }

    /// Purges one batch for each agent that has stored tasks, registered or not; returns whether there is
    /// more to do.
    async fn purge_batch(&mut self) -> Result<bool, StoreError> {
        let (now, catalog) = (self.retention_time().await?, self.catalog.load());
        let mut busy = false;
        let mut longest = Duration::ZERO;
        for owner in self.store.agents().await? {
            let retention = catalog.retention(&owner.tenant, &owner.agent);
            longest = longest.max(retention.keys);
            let waiting_since = self.waiting_since(&catalog, &owner, now);
            let expired = self
                .store
                .expired(Expiry {
                    owner,
                    now,
                    ended_before: before(now, retention.max_age),
                    max_tasks: retention.max_tasks,
                    waiting_since,
                    max: PURGE_BATCH,
                })
                .await?;
            busy |= expired.more;
            if !expired.finished.is_empty() {
                self.store.purge(expired.finished, now).await?;
            }
            let text = |_: &TaskRow| "timed out waiting for the client's reply".to_owned();
            expire(&*self.store, &expired.waiting, Reason::InputTimeout, text, self.clock.now()).await?;
        }
        // Rows are deleted in purge order, whichever agent they belong to. The key retention counts from the
        // purge, not from the task's end, so that a process that was down for long still detects duplicates.
        busy |= self.store.drop_purged(before(now, longest), PURGE_BATCH).await? == PURGE_BATCH;
        Ok(busy)
    }

    /// Since when a task of this agent has waited for its client too long.
    fn waiting_since(&self, catalog: &Catalog, owner: &TenantAgent, now: Timestamp) -> WaitingSince {
        let default = catalog.interrupted_ttl(&owner.tenant, &owner.agent, &self.limits);
        let registered = catalog.get(&owner.tenant, &owner.agent);
        let skills = registered.into_iter().flat_map(|registered| registered.skill_interrupted_ttls());
        let skills = skills.map(|(skill, ttl)| (skill.to_owned(), before(now, ttl))).collect();
        WaitingSince { default: before(now, default), skills }
    }
}

/// Logs what the system clock did and what follows from it.
fn report(jump: ClockJump) {
    let minutes = time::BELIEVED_AFTER.as_secs() / 60;
    match jump {
        ClockJump::Ahead(by) => tracing::warn!(
            seconds = by.as_secs(),
            "the system clock jumped ahead; if it is wrong, correct it within {minutes} minutes: after that \
             tasks expire by the new time"
        ),
        ClockJump::AheadAtStart(by) => tracing::info!(
            seconds = by.as_secs(),
            "the server was down, or the system clock is ahead; tasks expire by the new time in {minutes} minutes"
        ),
        ClockJump::Believed => {
            tracing::info!("the system clock stayed ahead; tasks expire by it from now on")
        }
        ClockJump::Corrected => {
            tracing::info!("the system clock is no longer ahead; no task has expired by the wrong time");
        }
        ClockJump::Back(by) => tracing::warn!(
            seconds = by.as_secs(),
            "the system clock went back; new statuses may be older than earlier ones, and tasks expire later"
        ),
    }
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}
