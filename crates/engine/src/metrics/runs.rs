//! What the runner counts.

use std::time::Duration;

use super::{BackendMetrics, Counter, Histogram, RUN_BOUNDS};
use crate::label_values;

label_values! {
    /// How a run ended.
    pub enum RunOutcome {
        /// The task is completed, or the agent has replied with a message.
        Completed = "completed",
        /// The task is failed.
        Failed = "failed",
        /// The agent has rejected the task.
        Rejected = "rejected",
        /// The task waits for input or credentials of the client.
        Interrupted = "interrupted",
        /// The turn is tried again later.
        Retry = "retry",
        /// The client has canceled the task.
        Canceled = "canceled",
        /// The process shuts down; the next one continues the turn.
        Released = "released",
        /// Another writer has changed the task, or the store cannot write: nothing is recorded.
        Lost = "lost",
    }
}

/// The runs in progress and the work that waits for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunnerLoad {
    /// Runs in progress; at most `limits.concurrent`.
    pub running: usize,
    /// Tasks that wait for a run; about `limits.queued` at most.
    pub waiting: usize,
    /// How long the first of them has waited.
    pub oldest: Option<Duration>,
}

/// The counters of a runner.
#[derive(Debug)]
pub struct RunMetrics {
    /// Runs that have ended, by [`RunOutcome`].
    pub ended: [Counter; RunOutcome::COUNT],
    /// How long they took.
    pub duration: Histogram,
    /// Tasks that failed because processes crashed while they ran.
    pub poisoned: Counter,
    /// Calls of other systems.
    pub backends: BackendMetrics,
}

impl Default for RunMetrics {
    fn default() -> Self {
        Self {
            ended: Default::default(),
            duration: Histogram::new(RUN_BOUNDS),
            poisoned: Counter::default(),
            backends: BackendMetrics::default(),
        }
    }
}
