//! The trace of a request: what its `traceparent` and `tracestate` say, and its ids for logs and errors.

use std::fmt::{self, Display, Formatter};

use http::HeaderMap;
use protocol::TraceContext;

/// Identifies a request in the log and in error answers, with its trace. The id is that of the request's span too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId {
    id: u64,
    trace: TraceId,
}

/// The id of a trace, shown with 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceId(u128);

impl RequestId {
    /// That of the request whose span this is.
    pub(crate) fn of(trace: &TraceContext) -> Self {
        Self { id: trace.span_id(), trace: TraceId(trace.trace_id()) }
    }

    /// The id as it is shown in hexadecimal digits.
    pub(crate) fn number(self) -> u64 {
        self.id
    }

    pub(crate) fn trace(self) -> TraceId {
        self.trace
    }
}

impl Display for RequestId {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.id)
    }
}

impl Display for TraceId {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

/// The id of the span that has caused another, shown with 16 hexadecimal digits.
pub(crate) struct ParentId(pub(crate) u64);

impl Display for ParentId {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// The span that has caused a request, as its headers say; `None` if they do not, or not validly.
pub(crate) fn parent(headers: &HeaderMap) -> Option<TraceContext> {
    let mut values = headers.get_all("traceparent").iter();
    let (parent, other) = (values.next()?, values.next());
    // Which of several is meant cannot be known.
    let parent = parent.to_str().ok().filter(|_| other.is_none())?;
    // A list may be in several lines.
    let states = headers.get_all("tracestate").iter().map(|state| state.to_str());
    let states: Option<Vec<&str>> = states.map(Result::ok).collect();
    TraceContext::parse(parent, states.map(|states| states.join(",")).as_deref())
}
