//! What operators may see of parts of the program that this crate does not know: the backends, and the configuration.
//! Who has them implements [`OperatorReports`].

use std::{fmt::Debug, time::Duration};

/// Reports about backends and configuration, as they are at the moment of the call.
pub trait OperatorReports: Debug + Send + Sync + 'static {
    /// The health of each backend, by name.
    fn backends(&self) -> Vec<BackendHealth>;

    /// The configuration in use, without secrets.
    fn configuration(&self) -> ConfigReport;
}

/// What is known about a backend.
#[derive(Clone, Debug)]
pub struct BackendHealth {
    /// Its name in the configuration: a skill, an MCP server or an OpenAPI document.
    pub name: String,
    /// `mcp`, `http`, `openapi` or `command`.
    pub kind: &'static str,
    /// Whether it works.
    pub state: BackendState,
    /// How many skills it offers; `None` if that is not known yet.
    pub tools: Option<usize>,
    /// Its processes or sessions; `None` for those that are not kept running.
    pub processes: Option<Processes>,
    /// Calls since the start of the server.
    pub calls: u64,
    /// Calls that have failed.
    pub failures: u64,
    /// Its last error.
    pub last_error: Option<BackendError>,
}

/// The processes of an MCP server, or its sessions over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Processes {
    /// How many are ready.
    pub ready: usize,
    /// How many have ended by themselves.
    pub restarts: u64,
}

/// The last error of a backend.
#[derive(Clone, Debug)]
pub struct BackendError {
    /// Its text.
    pub text: String,
    /// How long ago it happened.
    pub age: Duration,
}

/// Whether a backend works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendState {
    /// No call has shown it yet.
    Unused,
    /// It starts.
    Starting,
    /// It can be called, or its last call did not fail.
    Ready,
    /// Its last call has failed.
    Failing,
    /// A start has failed; the next one follows.
    BackingOff,
    /// It does not start, and calls fail at once.
    Failed,
}

impl BackendState {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failing => "failing",
            Self::BackingOff => "backing-off",
            Self::Failed => "failed",
        }
    }
}

/// The keys of a configuration, in the order of its documentation.
#[derive(Clone, Debug, Default)]
pub struct ConfigReport {
    /// The file; `None` if there is none.
    pub file: Option<String>,
    /// Every key with its value.
    pub settings: Vec<Setting>,
}

/// One key of a configuration.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name with those of its tables, such as `limits.rate.per_key`.
    pub key: String,
    /// The value in use.
    pub value: SettingValue,
    /// Where the value comes from.
    pub source: SettingSource,
    /// Whether a changed value takes effect at the next start only.
    pub needs_start: bool,
    /// The value that the next start would use, if that is another one.
    pub next_start: Option<SettingValue>,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValue {
    /// JSON that can be shown as it is.
    Shown(String),
    /// JSON in which secrets are replaced.
    Masked(String),
    /// Not a fixed value: where it comes from.
    Derived(String),
    /// There is none.
    Absent,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// Nothing sets it.
    Default,
    /// A line of the file.
    File(usize),
    /// The environment variable of this name.
    Environment(String),
    /// The flag of this name.
    Flag(String),
}
