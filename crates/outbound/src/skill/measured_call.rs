//! Counts and records the calls of backends, and makes their spans.

use std::time::Instant;

use engine::{
    AgentResult, Turn,
    metrics::{BackendKind, BackendOutcome},
};

use tracing::Span;

use crate::backend::{Call, CallRecord, Reply};

/// A call of a backend in progress; counted when it ends, as canceled if it is dropped before.
pub(super) struct MeasuredCall<'a> {
    turn: &'a Turn,
    record: &'a CallRecord,
    kind: BackendKind,
    begun: Instant,
    outcome: BackendOutcome,
    /// Ends with the call.
    span: Span,
}

/// What has ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEnd {
    /// The backend.
    ByItself,
    /// Its run was stopped.
    Stopped,
}

impl<'a> MeasuredCall<'a> {
    pub(super) fn begin(call: &Call<'a>, kind: BackendKind, record: &'a CallRecord) -> Self {
        record.begin();
        let span = tracing::debug_span!(
            target: "a2ad::backend",
            "backend call",
            traceparent = %call.trace_context(),
            parent = format_args!("{:016x}", call.turn.trace_context().span_id()),
            kind = BackendKind::LABELS[kind as usize],
            outcome = tracing::field::Empty,
        );
        Self { turn: call.turn, record, kind, begun: Instant::now(), outcome: BackendOutcome::Canceled, span }
    }

    /// The backend has returned this.
    pub(super) fn end(mut self, result: &AgentResult<Reply>) -> CallEnd {
        if self.turn.cancel.is_cancelled() {
            return CallEnd::Stopped;
        }
        self.record.end(result);
        self.outcome = match result {
            Ok(Reply::Done(_) | Reply::Streamed) => BackendOutcome::Done,
            Ok(Reply::Failed(failure)) if failure.retryable => BackendOutcome::RetryableFailure,
            Ok(Reply::Failed(_)) | Err(_) => BackendOutcome::Failure,
            Ok(Reply::Rejected(_)) => BackendOutcome::Rejected,
            Ok(Reply::Ask(_) | Reply::AskForCredentials(_)) => BackendOutcome::Question,
        };
        CallEnd::ByItself
    }
}

impl Drop for MeasuredCall<'_> {
    fn drop(&mut self) {
        self.span.record("outcome", BackendOutcome::LABELS[self.outcome as usize]);
        self.turn.count_backend_call(self.kind, self.outcome, self.begun.elapsed());
    }
}
