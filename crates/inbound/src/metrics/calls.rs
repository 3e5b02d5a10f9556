//! Counts calls and their streams.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use engine::{
    Origin, label_values,
    metrics::{Counter, DURATION_BOUNDS, Gauge, Histogram},
};
use protocol::{Dialect, ErrorKind};

use super::ServerMetrics;
use crate::routes::Handler;

label_values! {
    /// How a call was carried.
    pub(crate) enum BindingLabel {
        JsonRpc = "jsonrpc",
        Rest = "http_json",
        Grpc = "grpc",
        Text = "text",
        Mcp = "mcp",
        Run = "run",
        ProcessTask = "process_task",
    }
}

label_values! {
    /// The version of a call.
    pub(crate) enum DialectLabel {
        Draft = "draft",
        V03 = "0.3",
        V1 = "1.0",
        None = "none",
    }
}

label_values! {
    /// How a call ended. A task that fails is not an error of the call.
    pub(crate) enum CallOutcome {
        Ok = "ok",
        ClientError = "client_error",
        Denied = "denied",
        RateLimited = "rate_limited",
        Unavailable = "unavailable",
        DeadlineExceeded = "deadline_exceeded",
        InternalError = "internal_error",
        Disconnected = "disconnected",
    }
}

impl BindingLabel {
    /// The binding of a call that this handler serves.
    pub(crate) fn of(handler: Handler) -> Self {
        match handler {
            Handler::JsonRpc(_) => Self::JsonRpc,
            Handler::Grpc(_) => Self::Grpc,
            Handler::Text => Self::Text,
            Handler::Mcp => Self::Mcp,
            Handler::Run => Self::Run,
            Handler::ProcessTask => Self::ProcessTask,
            Handler::Rest
            | Handler::ExtendedCard
            | Handler::Card(_)
            | Handler::OpenApi
            | Handler::AgentList
            | Handler::PublishedKeys
            | Handler::Operators(_)
            | Handler::HomePage
            | Handler::Liveness
            | Handler::Readiness
            | Handler::Metrics
            | Handler::Nothing => Self::Rest,
        }
    }
}

impl From<Dialect> for DialectLabel {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Draft => Self::Draft,
            Dialect::V03 | Dialect::V03Proto => Self::V03,
            Dialect::V1 => Self::V1,
        }
    }
}

impl From<Origin> for DialectLabel {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::A2a(dialect) => dialect.into(),
            Origin::Mcp | Origin::Run => Self::None,
        }
    }
}

impl From<ErrorKind> for CallOutcome {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Internal | ErrorKind::InvalidAgentResponse => Self::InternalError,
            ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => Self::Denied,
            ErrorKind::RateLimited => Self::RateLimited,
            ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::DeadlineExceeded => Self::DeadlineExceeded,
            ErrorKind::Parse
            | ErrorKind::InvalidRequest
            | ErrorKind::MethodNotFound
            | ErrorKind::InvalidParams
            | ErrorKind::TaskNotFound
            | ErrorKind::TaskNotCancelable
            | ErrorKind::PushNotificationNotSupported
            | ErrorKind::UnsupportedOperation
            | ErrorKind::ContentTypeNotSupported
            | ErrorKind::ExtendedCardNotConfigured
            | ErrorKind::ExtensionSupportRequired
            | ErrorKind::VersionNotSupported
            | ErrorKind::AgentDisabled
            | ErrorKind::GuardrailBlocked
            | ErrorKind::BodyTooLarge
            | ErrorKind::UnsupportedMediaType
            | ErrorKind::MessageIdReused
            | ErrorKind::NotFound
            | ErrorKind::Conflict => Self::ClientError,
        }
    }
}

/// The numbers of calls by outcome, of one binding and dialect.
pub(super) type Outcomes = [Counter; CallOutcome::COUNT];

/// The counters of calls.
#[derive(Debug)]
pub(crate) struct CallMetrics {
    ended: [[Outcomes; DialectLabel::COUNT]; BindingLabel::COUNT],
    durations: [Histogram; BindingLabel::COUNT],
    open_streams: [Gauge; BindingLabel::COUNT],
    events: [Counter; BindingLabel::COUNT],
}

impl Default for CallMetrics {
    fn default() -> Self {
        Self {
            ended: Default::default(),
            durations: [const { Histogram::new(DURATION_BOUNDS) }; BindingLabel::COUNT],
            open_streams: Default::default(),
            events: Default::default(),
        }
    }
}

impl CallMetrics {
    /// Binding, dialect and the calls by outcome, where there were calls.
    pub(super) fn ended(&self) -> impl Iterator<Item = (&'static str, &'static str, &Outcomes)> {
        BindingLabel::LABELS.iter().zip(&self.ended).flat_map(|(binding, dialects)| {
            let dialects = DialectLabel::LABELS.iter().zip(dialects);
            let used = dialects.filter(|(_, outcomes)| outcomes.iter().any(|count| count.get() > 0));
            used.map(|(dialect, outcomes)| (*binding, *dialect, outcomes))
        })
    }

    pub(super) fn durations(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        BindingLabel::LABELS.iter().copied().zip(&self.durations)
    }

    pub(super) fn open_streams(&self) -> impl Iterator<Item = (&'static str, &Gauge)> {
        BindingLabel::LABELS.iter().copied().zip(&self.open_streams)
    }

    pub(super) fn events(&self) -> impl Iterator<Item = (&'static str, &Counter)> {
        BindingLabel::LABELS.iter().copied().zip(&self.events)
    }
}

/// A call in progress. Counted when it is dropped: as disconnected, unless [`end`](Self::end) was called.
pub(crate) struct MeasuredCall {
    metrics: Arc<ServerMetrics>,
    started: Instant,
    binding: BindingLabel,
    dialect: DialectLabel,
    error: Option<ErrorKind>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no response yet.
    Called,
    /// The response has begun, and goes on as a stream.
    Streaming,
    /// The response is complete.
    Ended,
}

impl MeasuredCall {
    pub(crate) fn begin(metrics: Arc<ServerMetrics>, binding: BindingLabel) -> Self {
        let (dialect, phase) = (DialectLabel::None, Phase::Called);
        Self { metrics, started: Instant::now(), binding, dialect, error: None, phase }
    }

    pub(crate) fn set_binding(&mut self, binding: BindingLabel) {
        self.binding = binding;
    }

    pub(crate) fn set_dialect(&mut self, dialect: impl Into<DialectLabel>) {
        self.dialect = dialect.into();
    }

    pub(crate) fn set_error(&mut self, kind: ErrorKind) {
        self.error = Some(kind);
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The response is complete.
    pub(crate) fn end(&mut self) {
        self.phase = Phase::Ended;
    }

    /// The response begins, and events follow. The duration of the call is the time until now.
    pub(crate) fn begin_stream(&mut self) {
        self.phase = Phase::Streaming;
        let (calls, binding) = (&self.metrics.calls, self.binding as usize);
        calls.durations[binding].observe_duration(self.started.elapsed());
        calls.open_streams[binding].add(1);
    }

    pub(crate) fn count_event(&self) {
        self.metrics.calls.events[self.binding as usize].increment();
    }
}

impl Drop for MeasuredCall {
    fn drop(&mut self) {
        let (calls, binding) = (&self.metrics.calls, self.binding as usize);
        match self.phase {
            Phase::Streaming => calls.open_streams[binding].add(-1),
            Phase::Called | Phase::Ended => {
                calls.durations[binding].observe_duration(self.started.elapsed());
            }
        }
        let outcome = match (self.error, self.phase) {
            (Some(kind), _) => kind.into(),
            (None, Phase::Called) => CallOutcome::Disconnected,
            (None, Phase::Streaming | Phase::Ended) => CallOutcome::Ok,
        };
        calls.ended[binding][self.dialect as usize][outcome as usize].increment();
    }
}
