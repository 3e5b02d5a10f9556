//! Traces of work: where a run finds the trace of the call that caused it, and the spans of runs and commits.
//!
//! The trace of a call is kept in memory only: a run that starts at once, waits for a slot or is retried belongs to the
//! trace of its call; after a restart a run begins a trace of its own. Storing it would cost every task 30 bytes for a
//! link that only the rare restart needs.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use protocol::TraceContext;
use tracing::Span;

use crate::ids::TaskNo;

/// The most tasks whose trace is kept while they wait; more begin traces of their own.
const MAX_WAITING: usize = 16_384;

/// A new trace.
pub fn begin_trace() -> TraceContext {
    TraceContext::begin(fastrand::u128(1..), random_span_id())
}

/// An id for a new span.
pub fn random_span_id() -> u64 {
    fastrand::u64(1..)
}

/// The span of a commit that this span causes, from the time it is queued until it is on disk. Dropping it ends it.
pub(crate) fn commit_span(parent: &TraceContext) -> Span {
    tracing::debug_span!(
        target: "a2ad::commit",
        "commit",
        traceparent = %parent.child(random_span_id()),
        parent = format_args!("{:016x}", parent.span_id()),
    )
}

/// The traces of tasks that wait for a run.
#[derive(Default)]
pub(crate) struct WaitingTraces(Mutex<HashMap<TaskNo, TraceContext>>);

impl WaitingTraces {
    /// Keeps the trace until the task runs.
    pub(crate) fn keep(&self, task: TaskNo, trace: TraceContext) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING {
            // Tasks that ended while they waited are never taken.
            waiting.clear();
        }
        waiting.insert(task, trace);
    }

    /// The trace of a task that runs now.
    pub(crate) fn take(&self, task: TaskNo) -> Option<TraceContext> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&task)
    }
}
