//! The catalogue of metrics: every name that `/metrics` prints, with its help and the values of its labels.
//!
//! `docs/metrics.md` is generated from [`ALL`] (`cargo xtask gen`).

use engine::metrics::{BackendKind, BackendOutcome, PushOutcome, RunOutcome};

use super::{
    calls::{BindingLabel, CallOutcome, DialectLabel},
    connections::HandlerLabel,
};

/// One metric.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) help: &'static str,
    pub(super) labels: &'static [Label],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// How the values of a histogram are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Counted in microseconds.
    Seconds,
    One,
}

/// A label with all its values.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) name: &'static str,
    /// Empty: the names of the configuration.
    pub(super) values: &'static [&'static str],
}

impl Label {
    pub(super) fn has(&self, value: &str) -> bool {
        self.values.is_empty() || self.values.contains(&value)
    }
}

/// The names in the configuration.
const BACKEND: Label = Label { name: "backend", values: &[] };
const BACKEND_KIND: Label = Label { name: "kind", values: BackendKind::LABELS };
/// The states of MCP servers.
pub(super) const MCP_STATES: [&str; 4] = ["starting", "ready", "backing-off", "failed"];
const BINDING: Label = Label { name: "binding", values: BindingLabel::LABELS };
const STATES: [&str; 8] = [
    "submitted",
    "working",
    "completed",
    "failed",
    "canceled",
    "input-required",
    "rejected",
    "auth-required",
];

const fn metric(name: &'static str, kind: Kind, labels: &'static [Label], help: &'static str) -> Metric {
    Metric { name, kind, unit: Unit::One, help, labels }
}

const fn counter(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    metric(name, Kind::Counter, labels, help)
}

const fn gauge(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    metric(name, Kind::Gauge, labels, help)
}

const fn seconds(name: &'static str, labels: &'static [Label], help: &'static str) -> Metric {
    Metric { unit: Unit::Seconds, ..metric(name, Kind::Histogram, labels, help) }
}

/// Declares the metrics, and the list of them in the same order.
macro_rules! metrics {
    ($($name:ident = $metric:expr;)+) => {
        $(pub(super) static $name: Metric = $metric;)+
        /// Every metric, in the order of the page.
        #[cfg(test)]
        static ALL: &[&Metric] = &[$(&$name),+];
    };
}

metrics! {
    REQUESTS = counter(
        "a2ad_requests_total",
        &[
            BINDING,
            Label { name: "dialect", values: DialectLabel::LABELS },
            Label { name: "outcome", values: CallOutcome::LABELS },
        ],
        "Calls that have ended, also refused ones. A stream counts when it ends. MCP, /run and plain text have no dialect.",
    );
    REQUEST_DURATION = seconds(
        "a2ad_request_duration_seconds",
        &[BINDING],
        "Time from the head of a call to its response; of a stream, to its beginning.",
    );
    STREAMS = gauge("a2ad_streams", &[BINDING], "Open event streams.");
    STREAM_EVENTS = counter("a2ad_stream_events_total", &[BINDING], "Events sent in streams.");
    HTTP_REQUESTS = counter(
        "a2ad_http_requests_total",
        &[Label { name: "handler", values: HandlerLabel::LABELS }],
        "All HTTP requests by what serves their path, also those that are not calls.",
    );
    CONNECTIONS = gauge("a2ad_connections", &[], "Open connections.");
    CONNECTIONS_ACCEPTED = counter("a2ad_connections_accepted_total", &[], "Connections that were accepted.");
    CONNECTIONS_REFUSED = counter(
        "a2ad_connections_refused_total",
        &[],
        "Connections that were closed at once because too many were open.",
    );
    TASKS = gauge(
        "a2ad_tasks",
        &[Label { name: "state", values: &STATES }],
        "Tasks in the store by state. A message that was answered without a task is none.",
    );
    TASKS_FINISHED = counter(
        "a2ad_tasks_finished_total",
        &[Label { name: "state", values: &["completed", "failed", "canceled", "rejected"] }],
        "Tasks that have reached a terminal state since the start.",
    );
    TASKS_POISONED = counter(
        "a2ad_tasks_poisoned_total",
        &[],
        "Tasks that failed because the server crashed repeatedly while they ran.",
    );
    QUEUED = gauge("a2ad_queue_tasks", &[], "Tasks that wait for a run.");
    QUEUE_LIMIT = gauge("a2ad_queue_limit_tasks", &[], "The limit of that, limits.queued.");
    QUEUE_AGE = gauge("a2ad_queue_oldest_seconds", &[], "How long the first task that waits has waited.");
    RUNNING = gauge("a2ad_runs", &[], "Runs in progress.");
    RUN_LIMIT = gauge("a2ad_runs_limit", &[], "The limit of that, limits.concurrent.");
    RUNS = counter(
        "a2ad_runs_total",
        &[Label { name: "outcome", values: RunOutcome::LABELS }],
        "Runs of agents that have ended. Each attempt at a turn is a run; outcome retry is followed by another.",
    );
    RUN_DURATION = seconds("a2ad_run_duration_seconds", &[], "How long runs took.");
    RUNS_CRASHED = counter(
        "a2ad_runs_crashed_total",
        &[],
        "Runs that a crash of the previous process had ended when this one started.",
    );
    BACKEND_CALLS = counter(
        "a2ad_backend_calls_total",
        &[
            Label { name: "kind", values: BackendKind::LABELS },
            Label { name: "outcome", values: BackendOutcome::LABELS },
        ],
        "Calls of backends that have ended.",
    );
    BACKEND_DURATION = seconds(
        "a2ad_backend_call_duration_seconds",
        &[Label { name: "kind", values: BackendKind::LABELS }],
        "How long calls of backends took, including the wait for a process.",
    );
    NAMED_BACKEND_CALLS = counter(
        "a2ad_named_backend_calls_total",
        &[BACKEND, BACKEND_KIND],
        "Calls of each backend of the configuration that have begun.",
    );
    NAMED_BACKEND_FAILURES = counter(
        "a2ad_named_backend_failures_total",
        &[BACKEND, BACKEND_KIND],
        "Calls of each backend of the configuration that have failed.",
    );
    MCP_SERVER_STATE = gauge(
        "a2ad_mcp_server_state",
        &[BACKEND, Label { name: "state", values: &MCP_STATES }],
        "1 for the state that an MCP server is in, and 0 for the others.",
    );
    PUSH_DELIVERIES = counter(
        "a2ad_push_deliveries_total",
        &[Label { name: "outcome", values: PushOutcome::LABELS }],
        "Attempts to deliver push notifications that have ended; `dead`: notifications that were given up.",
    );
    COMMIT_DURATION = seconds(
        "a2ad_commit_duration_seconds",
        &[],
        "How long commits of the store took, with the sync of the disk.",
    );
    COMMIT_CHANGES = metric(
        "a2ad_commit_changes",
        Kind::Histogram,
        &[],
        "How many changes of tasks each commit had.",
    );
    COMMIT_QUEUE = gauge("a2ad_commit_queue_bytes", &[], "Bytes that wait to be written to the store.");
    MEMORY = gauge("a2ad_memory_reserved_bytes", &[], "Bytes of requests and responses in memory.");
    MEMORY_LIMIT = gauge("a2ad_memory_limit_bytes", &[], "The limit of that, limits.memory.");
    STORE_BYTES = gauge("a2ad_store_bytes", &[], "Size of the store's files.");
    DISK_FREE = gauge("a2ad_disk_free_bytes", &[], "Bytes that the file system of the store has left.");
    RESIDENT_BYTES = gauge("process_resident_memory_bytes", &[], "Resident memory of the process.");
    CPU_SECONDS = counter("process_cpu_seconds_total", &[], "Processor time of the process.");
    OPEN_DESCRIPTORS = gauge("process_open_fds", &[], "Open file descriptors of the process.");
    MAX_DESCRIPTORS = gauge("process_max_fds", &[], "The limit of that.");
    START_TIME = gauge("process_start_time_seconds", &[], "When the server started, in seconds since 1970.");
    BUILD_INFO = gauge(
        "a2ad_build_info",
        &[Label { name: "version", values: &[env!("CARGO_PKG_VERSION")] }],
        "1, with the version of the program.",
    );
}

#[cfg(test)]
mod tests;
