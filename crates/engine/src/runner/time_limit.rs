//! When an attempt at a turn ends by itself: after its run time, or at the deadline of the task.

use std::time::Duration;

use protocol::Timestamp;
use tokio::time::Instant;

use super::{deadline_in, stop::StopReason};
use crate::{
    agent::Outcome,
    clock::Clock,
    task::{PublicIds, Reason},
};

/// When an attempt ends by itself, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimit {
    pub(super) at: Instant,
    cause: Cause,
}

#[derive(Clone, Copy, Debug)]
enum Cause {
    RunTime(Duration),
    Deadline(Timestamp),
}

impl TimeLimit {
    /// The limit of an attempt that starts now. The clock is read only here: when it is set during the attempt, the
    /// attempt ends at the same moment as before.
    pub(super) fn new(run_time: Duration, deadline: Option<Timestamp>, clock: &Clock) -> Self {
        let run_time_limit = Self { at: deadline_in(run_time), cause: Cause::RunTime(run_time) };
        let Some(deadline) = deadline else { return run_time_limit };
        let left = deadline.as_millis().saturating_sub(clock.now().as_millis());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        if left < run_time {
            Self { at: deadline_in(left), cause: Cause::Deadline(deadline) }
        } else {
            run_time_limit
        }
    }

    /// Whether the deadline of the task had passed before the attempt.
    pub(super) fn has_passed(&self) -> bool {
        matches!(self.cause, Cause::Deadline(_)) && self.at <= Instant::now()
    }

    /// Why the agent is asked to stop at the limit.
    pub(super) fn stop_reason(&self) -> StopReason {
        match self.cause {
            Cause::RunTime(_) => StopReason::RunTime,
            Cause::Deadline(_) => StopReason::Deadline,
        }
    }

    /// The outcome of the attempt at the limit.
    pub(super) fn outcome(&self, names: &PublicIds) -> Outcome {
        let (reason, text) = match self.cause {
            Cause::RunTime(run_time) => (Reason::RunTime, format!("the turn took longer than {run_time:?}")),
            Cause::Deadline(deadline) => (Reason::Deadline, deadline_text(deadline)),
        };
        Outcome::Failed { message: Some(names.explain(text, reason, None)), retryable: false }
    }
}

/// Text for the client when the task did not end before its deadline.
pub(super) fn deadline_text(deadline: Timestamp) -> String {
    format!("the task did not end before its deadline {deadline}")
}
