//! How a run is ended from outside: the agent's cancellation token fires, and the agent has [`STOP_GRACE`] to stop by
//! itself before its future is dropped. What it records meanwhile is rejected, except in a drain.

use std::time::Duration;

use tokio::time::Instant;

/// How long an agent may take to stop after its cancellation token has fired.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// A run that is ended from outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) reason: StopReason,
    /// When the agent's future is dropped.
    pub(super) until: Instant,
    /// The agent's future was dropped before it ended.
    pub(super) timed_out: bool,
}

impl Stop {
    /// The agent's grace period starts now.
    pub(super) fn now(reason: StopReason) -> Self {
        Self { reason, until: Instant::now() + STOP_GRACE, timed_out: false }
    }
}

/// Why a run is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// The client canceled the task.
    Canceled,
    /// The attempt took longer than its run time.
    RunTime,
    /// The deadline of the task has passed.
    Deadline,
    /// The task is larger than `limits.max_task` or than the store allows.
    TooLarge,
    /// The process shuts down and releases the work. Until then the agent may record updates.
    Drain,
    /// Another writer has changed the task, or the change that started the turn was rejected.
    Lost,
    /// The store cannot write.
    StoreUnavailable,
    /// The agent's last update has ended the turn, but the agent has not returned.
    TurnEnded,
}

impl StopReason {
    /// The code for the log.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Canceled => "canceled",
            Self::RunTime => "run_time",
            Self::Deadline => "deadline",
            Self::TooLarge => "too_large",
            Self::Drain => "drain",
            Self::Lost => "lost",
            Self::StoreUnavailable => "store_unavailable",
            Self::TurnEnded => "turn_ended",
        }
    }
}
