//! What operators see of the backends and of the configuration in use. Who follows their changes keeps it up to date.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use inbound::{BackendError, BackendHealth, BackendState, ConfigReport, OperatorReports, Processes};
use outbound::backend::{CallRecord, CallSummary};
#[cfg(feature = "mcp")]
use outbound::backends::mcp::{McpServer, Status};

use super::{Backends, SkillAgent};

/// The backends and the configuration in use.
#[derive(Default)]
pub struct Reports(Mutex<InUse>);

#[derive(Default)]
struct InUse {
    backends: BTreeMap<BackendName, WatchedBackend>,
    config: ConfigReport,
}

/// The name of a backend in the file, and its kind: a server and a skill may have the same name.
pub(super) type BackendName = (String, &'static str);

/// A backend with what is known about its calls.
#[derive(Clone)]
pub(super) struct WatchedBackend {
    pub(super) record: Arc<CallRecord>,
    pub(super) source: BackendSource,
}

#[derive(Clone)]
pub(super) enum BackendSource {
    /// An MCP server.
    #[cfg(feature = "mcp")]
    Mcp(McpServer),
    /// An OpenAPI document with so many operations.
    #[cfg(feature = "openapi")]
    OpenApi(usize),
    /// An HTTP function or a command.
    Skill,
}

impl Reports {
    /// Puts what a configuration has into use. Servers of the one before may stop now.
    pub fn set<'a>(
        &self,
        backends: &Backends,
        agents: impl Iterator<Item = &'a SkillAgent>,
        config: ConfigReport,
    ) {
        let backends = backends.watched(agents);
        let replaced = std::mem::replace(&mut *self.lock(), InUse { backends, config });
        drop(replaced);
    }

    fn lock(&self) -> MutexGuard<'_, InUse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Reports")
    }
}

impl OperatorReports for Reports {
    fn backends(&self) -> Vec<BackendHealth> {
        let backends = self.lock().backends.clone();
        backends.into_iter().map(|(name, backend)| health(name, &backend)).collect()
    }

    fn configuration(&self) -> ConfigReport {
        self.lock().config.clone()
    }
}

fn health((name, kind): BackendName, backend: &WatchedBackend) -> BackendHealth {
    let CallSummary { calls, failures, last_failed, last_error } = backend.record.summary();
    let last_error = last_error.map(|error| BackendError { text: error.text, age: error.at.elapsed() });
    let of_calls = match last_failed {
        // A call runs.
        None if calls > 0 => BackendState::Ready,
        None => BackendState::Unused,
        Some(false) => BackendState::Ready,
        Some(true) => BackendState::Failing,
    };
    let health = BackendHealth {
        name,
        kind,
        state: of_calls,
        tools: None,
        processes: None,
        calls,
        failures,
        last_error,
    };
    match &backend.source {
        #[cfg(feature = "mcp")]
        BackendSource::Mcp(server) => with_processes(health, server),
        #[cfg(feature = "openapi")]
        BackendSource::OpenApi(operations) => BackendHealth { tools: Some(*operations), ..health },
        BackendSource::Skill => health,
    }
}

#[cfg(feature = "mcp")]
fn with_processes(health: BackendHealth, server: &McpServer) -> BackendHealth {
    let found = server.health();
    let state = match &found.status {
        Status::Starting => BackendState::Starting,
        Status::Ready => BackendState::Ready,
        Status::BackingOff { .. } => BackendState::BackingOff,
        Status::Failed { .. } => BackendState::Failed,
    };
    let stderr = found.stderr_tail.trim().lines().last().unwrap_or_default().to_owned();
    let of_start = found.last_start_failure.map(|(error, at)| BackendError {
        text: if stderr.is_empty() { error } else { format!("{error} ({stderr})") },
        age: Instant::now().saturating_duration_since(at.into_std()),
    });
    let last_error = [health.last_error, of_start].into_iter().flatten().min_by_key(|error| error.age);
    BackendHealth {
        state,
        tools: server.tools().borrow().as_ref().map(|tools| tools.len()),
        processes: Some(Processes { ready: found.ready, restarts: found.restarts }),
        last_error,
        ..health
    }
}
