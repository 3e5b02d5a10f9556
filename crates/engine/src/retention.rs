//! How long finished tasks are kept, and the duty that forgets them.
//!
//! A finished task is emptied when its time is over or when there are too many; its row stays a while longer, so
//! that repetitions of its messages are still known. A task that waits for its client does not wait for ever.
//! Open tasks are never touched otherwise. Forgetting goes in small steps, one at a time behind live work.

use std::{sync::Arc, time::Duration};

use protocol::{TaskState, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::{
    agents::Agents,
    clock::Clock,
    log::Log,
    runner::word,
    store::{Advance, Change, Expiry, NotCommitted, Step, Store, StoreError, TaskRow},
    task::Names,
};

/// How long an agent's tasks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// After its end.
    pub max_age: Duration,
    /// How many finished ones; the oldest go first.
    pub max_tasks: Option<u64>,
    /// How long a task waits for its client before it fails.
    pub max_wait: Duration,
    /// How long the messages of a forgotten task are still known, so that their repetitions make no new one.
    pub keys: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for Retention {
    fn default() -> Self {
        Self { max_age: DAY, max_tasks: None, max_wait: DAY, keys: DAY }
    }
}

/// Tasks in one step.
const STEP: usize = 64;
/// How often there is a look, at least and at most.
const PAUSES: std::ops::RangeInclusive<Duration> = Duration::from_millis(250)..=Duration::from_secs(30);

/// The duty that forgets.
pub(crate) struct Purger {
    store: Arc<dyn Store>,
    agents: Agents,
    clock: Clock,
}

impl Purger {
    pub(crate) fn new(store: Arc<dyn Store>, agents: Agents, clock: Clock) -> Self {
        Self { store, agents, clock }
    }

    /// Works until the process drains.
    pub(crate) async fn run(self, draining: CancellationToken) {
        loop {
            let busy = match self.round().await {
                Ok(busy) => busy,
                Err(error) => {
                    tracing::warn!(%error, "old tasks could not be looked up");
                    false
                }
            };
            let pause = if busy { Duration::ZERO } else { self.pause() };
            tokio::select! {
                biased;
                () = draining.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// A twentieth of the shortest time anything is kept.
    fn pause(&self) -> Duration {
        let shortest = self
            .agents
            .retentions()
            .map(|Retention { max_age, max_wait, keys, .. }| max_age.min(max_wait).min(keys));
        (shortest.min().unwrap_or(DAY) / 20).clamp(*PAUSES.start(), *PAUSES.end())
    }

    /// One step for each agent that has tasks here, hosted or not; says whether there is more to do.
    async fn round(&self) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let mut busy = false;
        let mut longest = Duration::ZERO;
        for agent in self.store.agents().await? {
            let retention = self.agents.retention(&agent);
            longest = longest.max(retention.keys);
            let expired = self
                .store
                .expired(Expiry {
                    agent,
                    ended_before: before(now, retention.max_age),
                    max_tasks: retention.max_tasks,
                    waiting_since: before(now, retention.max_wait),
                    max: STEP,
                })
                .await?;
            busy |= expired.finished.len() == STEP;
            if !expired.finished.is_empty() {
                self.store.purge(expired.finished, now).await?;
            }
            for row in &expired.waiting {
                self.fail_if_waiting(row, now).await?;
            }
        }
        // Rows are dropped in the order in which their tasks were emptied, whatever agent they were of. The time counts
        // from then on: a process that was down for long still knows what was said before.
        busy |= self.store.drop_purged(before(now, longest), STEP).await? == STEP;
        Ok(busy)
    }

    async fn fail_if_waiting(&self, row: &TaskRow, now: Timestamp) -> Result<(), StoreError> {
        let names = Names::of(&self.store.ids(), row);
        let message = word(&names, "nobody answered in time");
        let change = Change::Advance(Box::new(Advance {
            no: row.no,
            step: Step::Expire { fence: row.fence },
            log: Log::pack([(names.status(TaskState::Failed, Some(message), now), None)]),
            status: Some((TaskState::Failed, now)),
            visibility: None,
            saved: None,
            skill: None,
            key: None,
        }));
        match self.store.commit(change).await {
            Err(NotCommitted::Unavailable(reason)) => Err(StoreError::Unavailable(reason)),
            _ => Ok(()),
        }
    }
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}
