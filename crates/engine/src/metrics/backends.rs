//! Calls of other systems.

use std::time::Duration;

use super::{Counter, Histogram, RUN_BOUNDS};
use crate::label_values;

label_values! {
    /// The kind of a backend.
    pub enum BackendKind {
        /// A tool of an MCP server.
        Mcp = "mcp",
        /// An HTTP function.
        Http = "http",
        /// An operation of an OpenAPI document.
        OpenApi = "openapi",
        /// A command.
        Command = "command",
        /// Any other.
        Other = "other",
    }
}

label_values! {
    /// How a call of a backend ended.
    pub enum BackendOutcome {
        /// With a result.
        Done = "done",
        /// With a failure that another attempt may not have.
        RetryableFailure = "retryable_failure",
        /// With any other failure.
        Failure = "failure",
        /// It rejected the arguments.
        Rejected = "rejected",
        /// With a question to the client.
        Question = "question",
        /// The call was canceled or timed out before it ended.
        Canceled = "canceled",
    }
}

/// How often backends were called, with which outcome, and how long it took.
#[derive(Debug)]
pub struct BackendMetrics {
    calls: [[Counter; BackendOutcome::COUNT]; BackendKind::COUNT],
    durations: [Histogram; BackendKind::COUNT],
}

impl Default for BackendMetrics {
    fn default() -> Self {
        Self {
            calls: Default::default(),
            durations: [const { Histogram::new(RUN_BOUNDS) }; BackendKind::COUNT],
        }
    }
}

impl BackendMetrics {
    /// Counts a call.
    pub fn count(&self, kind: BackendKind, outcome: BackendOutcome, duration: Duration) {
        self.calls[kind as usize][outcome as usize].increment();
        self.durations[kind as usize].observe_duration(duration);
    }

    /// The numbers of calls by outcome, for each kind.
    pub fn calls(&self) -> impl Iterator<Item = (&'static str, &[Counter; BackendOutcome::COUNT])> {
        BackendKind::LABELS.iter().copied().zip(&self.calls)
    }

    /// The durations for each kind.
    pub fn durations(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        BackendKind::LABELS.iter().copied().zip(&self.durations)
    }
}
