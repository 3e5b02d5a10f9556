//! The page: every metric of the catalogue with its samples.

use engine::metrics::{PushOutcome, RunOutcome};
use protocol::{TaskState, dialect::v03::task::state_name};

use super::{
    calls::CallOutcome,
    catalogue as metric,
    connections::HandlerLabel,
    exposition::{Format, Page},
    process::ProcessUsage,
};
use crate::{routes, server_state::ServerState};

/// Renders the page.
pub(super) async fn render(server: &ServerState, format: Format) -> String {
    let mut page = Page::new(format);
    calls(&mut page, server);
    connections(&mut page, server);
    tasks(&mut page, server);
    runs(&mut page, server);
    commits(&mut page, server);
    memory(&mut page, server);
    disk(&mut page, server).await;
    process(&mut page, server).await;
    page.finish()
}

fn calls(page: &mut Page, server: &ServerState) {
    let calls = &server.metrics.calls;
    let mut samples = page.metric(&metric::REQUESTS);
    for (binding, dialect, outcomes) in calls.ended() {
        for (outcome, count) in CallOutcome::LABELS.iter().zip(outcomes) {
            samples.sample(&[binding, dialect, outcome], count.get());
        }
    }
    let mut samples = page.metric(&metric::REQUEST_DURATION);
    for (binding, histogram) in calls.durations() {
        samples.histogram(&[binding], histogram);
    }
    let mut samples = page.metric(&metric::STREAMS);
    for (binding, open) in calls.open_streams() {
        samples.sample(&[binding], open.get());
    }
    let mut samples = page.metric(&metric::STREAM_EVENTS);
    for (binding, count) in calls.events() {
        samples.sample(&[binding], count.get());
    }
}

fn connections(page: &mut Page, server: &ServerState) {
    let mut counts = [0; HandlerLabel::COUNT];
    for (number, count) in server.counters.all() {
        let handler = routes::TABLE.get(number).map_or(HandlerLabel::Unknown, |row| row.handler.into());
        counts[handler as usize] += count;
    }
    let mut samples = page.metric(&metric::HTTP_REQUESTS);
    for (handler, count) in HandlerLabel::LABELS.iter().zip(counts) {
        samples.sample(&[handler], count);
    }
    let connections = &server.metrics.connections;
    page.value(&metric::CONNECTIONS, connections.open.get());
    page.value(&metric::CONNECTIONS_ACCEPTED, connections.accepted.get());
    page.value(&metric::CONNECTIONS_REFUSED, connections.refused.get());
}

fn tasks(page: &mut Page, server: &ServerState) {
    let store = server.engine.store_metrics();
    let mut samples = page.metric(&metric::TASKS);
    for state in TaskState::ALL.into_iter().filter(|state| *state != TaskState::Unspecified) {
        samples.sample(&[state_name(state)], store.tasks[usize::from(state.number())].get());
    }
    let mut samples = page.metric(&metric::TASKS_FINISHED);
    for state in TaskState::ALL.into_iter().filter(|state| state.is_terminal()) {
        samples.sample(&[state_name(state)], store.finished[usize::from(state.number())].get());
    }
    page.value(&metric::TASKS_POISONED, server.engine.run_metrics().poisoned.get());
}

fn runs(page: &mut Page, server: &ServerState) {
    let (runs, load, limits) = (server.engine.run_metrics(), server.engine.load(), server.engine.limits());
    page.value(&metric::QUEUED, load.waiting);
    page.value(&metric::QUEUE_LIMIT, limits.queued);
    page.value(&metric::QUEUE_AGE, load.oldest.unwrap_or_default().as_secs_f64());
    page.value(&metric::RUNNING, load.running);
    page.value(&metric::RUN_LIMIT, limits.concurrent);
    let mut samples = page.metric(&metric::RUNS);
    for (outcome, count) in RunOutcome::LABELS.iter().zip(&runs.ended) {
        samples.sample(&[outcome], count.get());
    }
    page.metric(&metric::RUN_DURATION).histogram(&[], &runs.duration);
    page.value(&metric::RUNS_CRASHED, server.engine.store_metrics().crashed_runs.get());
    let mut samples = page.metric(&metric::BACKEND_CALLS);
    for (kind, outcomes) in runs.backends.calls() {
        for (outcome, count) in engine::metrics::BackendOutcome::LABELS.iter().zip(outcomes) {
            samples.sample(&[kind, outcome], count.get());
        }
    }
    let mut samples = page.metric(&metric::BACKEND_DURATION);
    for (kind, histogram) in runs.backends.durations() {
        samples.histogram(&[kind], histogram);
    }
    named_backends(page, server);
    let mut samples = page.metric(&metric::PUSH_DELIVERIES);
    let push = server.engine.push_metrics();
    for (index, outcome) in PushOutcome::LABELS.iter().enumerate() {
        samples.sample(&[outcome], push.map_or(0, |push| push.outcomes()[index].get()));
    }
}

/// The backends of the configuration, by name.
fn named_backends(page: &mut Page, server: &ServerState) {
    let backends = server.reports.as_ref().map(|reports| reports.backends()).unwrap_or_default();
    let mut samples = page.metric(&metric::NAMED_BACKEND_CALLS);
    for backend in &backends {
        samples.sample(&[backend.name.as_str(), backend.kind], backend.calls);
    }
    let mut samples = page.metric(&metric::NAMED_BACKEND_FAILURES);
    for backend in &backends {
        samples.sample(&[backend.name.as_str(), backend.kind], backend.failures);
    }
    let mut samples = page.metric(&metric::MCP_SERVER_STATE);
    for backend in backends.iter().filter(|backend| backend.kind == "mcp") {
        for state in metric::MCP_STATES {
            samples.sample(&[backend.name.as_str(), state], u8::from(backend.state.name() == state));
        }
    }
}

fn commits(page: &mut Page, server: &ServerState) {
    let store = server.engine.store_metrics();
    page.metric(&metric::COMMIT_DURATION).histogram(&[], &store.commit_duration);
    page.metric(&metric::COMMIT_CHANGES).histogram(&[], &store.commit_changes);
    page.value(&metric::COMMIT_QUEUE, store.queued_bytes.get());
}

fn memory(page: &mut Page, server: &ServerState) {
    let memory = server.engine.memory();
    page.value(&metric::MEMORY, memory.used());
    page.value(&metric::MEMORY_LIMIT, memory.limit());
}

async fn disk(page: &mut Page, server: &ServerState) {
    let Ok(usage) = server.engine.disk_usage().await else { return };
    page.value(&metric::STORE_BYTES, usage.used);
    if let Some(free) = usage.free {
        page.value(&metric::DISK_FREE, free);
    }
}

async fn process(page: &mut Page, server: &ServerState) {
    let mut maybe = |metric, value: Option<f64>| {
        if let Some(value) = value {
            page.value(metric, value);
        }
    };
    let usage = tokio::task::spawn_blocking(ProcessUsage::read).await.unwrap_or_default();
    maybe(&metric::RESIDENT_BYTES, usage.resident_bytes.map(|bytes| bytes as f64));
    maybe(&metric::CPU_SECONDS, usage.cpu_seconds);
    maybe(&metric::OPEN_DESCRIPTORS, usage.open_descriptors.map(|count| count as f64));
    maybe(&metric::MAX_DESCRIPTORS, usage.max_descriptors.map(|count| count as f64));
    page.value(&metric::START_TIME, server.started_at.as_millis() as f64 / 1e3);
    page.metric(&metric::BUILD_INFO).sample(&[env!("CARGO_PKG_VERSION")], 1);
}
