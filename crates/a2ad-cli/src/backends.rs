//! The running backends of a configuration: MCP servers and fetched OpenAPI documents.
//!
//! [`Backends::not_started`] has nothing running; `a2ad check` and the reading of the configuration use it.
//! [`Backends::start`] starts every MCP server. The catalog is built from what the servers offer at the moment, and built again when that
//! changes. [`Backends::update`] follows a new configuration: servers that it does not change keep their processes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use engine::{AgentResult, OnCrash};
use futures_util::future::{BoxFuture, join_all, select_all};
use outbound::{
    backend::{Backend, Call, CallRecord, RecordedBackend, Reply},
    backends::mcp::{McpConfig, McpServer, Status, Tool},
    process::Launcher,
    schema::{InvalidSchema, Schema},
    skill::BackendSkill,
};
use protocol::Json;
use tokio::sync::watch;

use crate::{
    config::{BackendConfig, Config, DocumentConfig, SkillConfig, SkillSource, launcher},
    operator_reports::{BackendName, BackendSource, WatchedBackend},
};

/// How long a start waits for the tools of MCP servers, so that tasks left by the last process find their skills.
const FIRST_LIST: Duration = Duration::from_secs(15);

/// What runs for a configuration.
pub(crate) struct Backends {
    mcp: BTreeMap<String, Running>,
    /// By the name of the document.
    operations: BTreeMap<String, Vec<BackendSkill>>,
    /// What is known about the calls of each backend; kept over reloads.
    records: Mutex<BTreeMap<BackendName, Arc<CallRecord>>>,
}

/// The kinds of backends, as the file names them.
const MCP: &str = "mcp";
const OPENAPI: &str = "openapi";

/// Which documents are fetched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetch {
    All,
    /// Those whose configuration has changed.
    Changed,
}

struct Running {
    config: McpConfig,
    server: McpServer,
    tools: watch::Receiver<Option<Arc<[Tool]>>>,
}

impl Backends {
    /// Nothing is running; known are the operations of documents that were read with the configuration.
    pub(crate) fn not_started(documents: &BTreeMap<String, DocumentConfig>) -> Self {
        let read = |(name, document): (&String, &DocumentConfig)| match document {
            DocumentConfig::Read(skills) => Some((name.clone(), skills.clone())),
            DocumentConfig::Fetched { .. } => None,
        };
        let operations = documents.iter().filter_map(read).collect();
        Self { mcp: BTreeMap::new(), operations, records: Mutex::default() }
    }

    /// Starts the MCP servers and loads the OpenAPI documents, and waits until each server has listed its tools or has
    /// failed to start, but not for long. A server that failed is started again in the background, and its tools are
    /// added later.
    ///
    /// # Errors
    ///
    /// A document cannot be fetched or is not valid.
    pub(crate) async fn start(config: &Config) -> anyhow::Result<Self> {
        let launcher = launcher();
        let start = |(name, server): (&String, _)| (name.clone(), Running::start(server, &launcher, config));
        let mut backends = Self {
            mcp: config.mcp.iter().map(start).collect(),
            operations: BTreeMap::new(),
            records: Mutex::default(),
        };
        for (name, document) in &config.openapi {
            backends.operations.insert(name.clone(), document.skills(&config.dialer).await?);
        }
        first_lists(backends.mcp.values()).await;
        for (name, running) in &mut backends.mcp {
            running.warn_if_unlisted(name);
        }
        Ok(backends)
    }

    /// Follows a new configuration. A server that it changes is replaced when the new one has listed its tools, so that
    /// there are no calls meanwhile that find none. A server that it removes stops when its last call has ended.
    ///
    /// # Errors
    ///
    /// A document cannot be fetched or is not valid. Then nothing has changed.
    pub(crate) async fn update(&mut self, old: &Config, new: &Config, fetch: Fetch) -> anyhow::Result<()> {
        let mut operations = BTreeMap::new();
        for (name, document) in &new.openapi {
            let unchanged = old.openapi.get(name).is_some_and(|old| old.is_fetched_like(document));
            let kept = self.operations.get(name).filter(|_| unchanged && fetch == Fetch::Changed);
            let skills = match kept {
                Some(kept) => kept.clone(),
                None => document.skills(&new.dialer).await?,
            };
            operations.insert(name.clone(), skills);
        }
        let launcher = launcher();
        let changed = |(name, server): &(&String, &McpConfig)| {
            self.mcp.get(*name).is_none_or(|running| running.config != **server)
        };
        let mut started: BTreeMap<String, Running> = new
            .mcp
            .iter()
            .filter(changed)
            .map(|(name, server)| (name.clone(), Running::start(server, &launcher, new)))
            .collect();
        let replacements = started.iter().filter(|(name, _)| self.mcp.contains_key(*name));
        first_lists(replacements.map(|(_, running)| running)).await;
        for (name, running) in &mut started {
            running.tools.mark_unchanged();
            if self.mcp.contains_key(name) {
                running.warn_if_unlisted(name);
            }
        }
        self.mcp.retain(|name, _| new.mcp.contains_key(name));
        self.mcp.extend(started);
        self.operations = operations;
        let watched = self.watched(new);
        self.records().retain(|name, _| watched.contains_key(name));
        Ok(())
    }

    /// Starts one MCP server for a trial, and waits until it has listed its tools or has failed to start.
    pub(crate) async fn start_one(config: &Config, name: &str) -> Self {
        let launcher = launcher();
        let started =
            config.mcp.get(name).map(|server| (name.to_owned(), Running::start(server, &launcher, config)));
        let mcp = started.into_iter().collect();
        let backends = Self { mcp, operations: BTreeMap::new(), records: Mutex::default() };
        first_lists(backends.mcp.values()).await;
        backends
    }

    /// Why a server does not work, with the end of what it wrote to standard error.
    pub(crate) fn problem(&self, name: &str) -> String {
        let Some(running) = self.mcp.get(name) else { return "it was not started".into() };
        let health = running.server.health();
        let last = health.stderr_tail.trim().lines().last().unwrap_or_default().to_owned();
        match &health.status {
            Status::BackingOff { error, .. } | Status::Failed { error } if last.is_empty() => error.clone(),
            Status::BackingOff { error, .. } | Status::Failed { error } => format!("{error} ({last})"),
            Status::Starting | Status::Ready => format!("no answer within {} s", FIRST_LIST.as_secs()),
        }
    }

    /// The tools of an MCP server; `None` until it has listed them, and if it is not running.
    pub(crate) fn tools(&self, server: &str) -> Option<Arc<[Tool]>> {
        self.mcp.get(server)?.tools.borrow().clone()
    }

    /// All tools of an MCP server as skills.
    pub(crate) fn tool_skills(&self, server: &str) -> Vec<BackendSkill> {
        let Some(running) = self.mcp.get(server) else { return Vec::new() };
        let tools = running.tools.borrow().clone();
        let skills = tools.iter().flat_map(|tools| tools.iter()).filter_map(|tool| running.skill(tool));
        skills.map(|skill| self.recorded(MCP, server, skill)).collect()
    }

    /// One tool as a skill. Without its schemas if the server has not listed it; its calls fail if they are too complex.
    pub(crate) fn tool_skill(&self, server: &str, tool: &str) -> BackendSkill {
        let running = self.mcp.get(server);
        let listed = self.tools(server).and_then(|tools| tools.iter().find(|one| one.name == tool).cloned());
        let without_schemas = |backend| BackendSkill {
            id: tool.to_owned(),
            description: format!("The tool {tool} of the MCP server {server}"),
            tags: Vec::new(),
            examples: Vec::new(),
            input_schema: None,
            output_schema: None,
            on_crash: OnCrash::Fail,
            backend,
        };
        let skill = match (running, listed) {
            (Some(running), Some(listed)) => {
                running.skill(&listed).unwrap_or_else(|| without_schemas(Arc::new(Unusable::SCHEMA)))
            }
            (Some(running), None) => without_schemas(running.server.backend(tool)),
            (None, _) => without_schemas(Arc::new(Unusable::NOT_RUNNING)),
        };
        self.recorded(MCP, server, skill)
    }

    /// The operations of an OpenAPI document as skills.
    pub(crate) fn operations(&self, document: &str) -> Vec<BackendSkill> {
        let skills = self.operations.get(document).cloned().unwrap_or_default();
        skills.into_iter().map(|skill| self.recorded(OPENAPI, document, skill)).collect()
    }

    /// A skill whose calls are recorded under the name of its backend.
    pub(crate) fn recorded(&self, kind: &'static str, name: &str, skill: BackendSkill) -> BackendSkill {
        let record = self.record((name.to_owned(), kind));
        BackendSkill { backend: Arc::new(RecordedBackend::new(Arc::clone(&skill.backend), record)), ..skill }
    }

    /// The backends of a configuration, for operators.
    pub(crate) fn watched(&self, config: &Config) -> BTreeMap<BackendName, WatchedBackend> {
        let servers = self
            .mcp
            .iter()
            .map(|(name, running)| ((name.clone(), MCP), BackendSource::Mcp(running.server.clone())));
        let documents = self
            .operations
            .iter()
            .map(|(name, operations)| ((name.clone(), OPENAPI), BackendSource::OpenApi(operations.len())));
        let skills = config.agents.iter().flat_map(|agent| &agent.skills).filter_map(|skill| match skill {
            SkillSource::Own(SkillConfig { id, backend: BackendConfig::Ready { kind, .. }, .. }) => {
                Some(((id.clone(), *kind), BackendSource::Skill))
            }
            SkillSource::Own(_) | SkillSource::Mcp { .. } | SkillSource::OpenApi { .. } => None,
        });
        let watched = |(name, source): (BackendName, BackendSource)| {
            let record = self.record(name.clone());
            (name, WatchedBackend { record, source })
        };
        servers.chain(documents).chain(skills).map(watched).collect()
    }

    fn record(&self, name: BackendName) -> Arc<CallRecord> {
        Arc::clone(self.records().entry(name).or_default())
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<BackendName, Arc<CallRecord>>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the tools of a server have changed. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        if self.mcp.is_empty() {
            return std::future::pending().await;
        }
        let changes = self.mcp.values_mut().map(|running| Box::pin(running.changed()));
        select_all(changes).await;
    }

    /// Ends all processes.
    pub(crate) async fn stop(&self) {
        join_all(self.mcp.values().map(|running| running.server.stop())).await;
    }
}

/// Waits until servers have listed their tools or have failed to start. One that needs longer is reported by the caller.
async fn first_lists(started: impl Iterator<Item = &Running>) {
    let started = join_all(started.map(|running| running.server.first_start()));
    let _ = tokio::time::timeout(FIRST_LIST, started).await;
}

impl Running {
    fn start(config: &McpConfig, launcher: &Launcher, all: &Config) -> Self {
        let server = McpServer::start(config.clone(), launcher.clone(), all.dialer.clone());
        let tools = server.tools();
        Self { config: config.clone(), server, tools }
    }

    fn warn_if_unlisted(&mut self, name: &str) {
        if self.tools.borrow_and_update().is_none() {
            tracing::warn!(server = %name, health = ?self.server.health(), "the MCP server has not listed its tools yet");
        }
    }

    async fn changed(&mut self) {
        if self.tools.changed().await.is_err() {
            // The server has stopped, so nothing changes any more.
            std::future::pending::<()>().await;
        }
    }

    /// A tool as a skill; `None` if it cannot be offered.
    fn skill(&self, tool: &Tool) -> Option<BackendSkill> {
        let output_schema = tool.output_schema.as_ref().map(|text| schema(tool, text));
        Some(BackendSkill {
            id: tool.name.clone(),
            description: tool.description.clone(),
            tags: Vec::new(),
            examples: Vec::new(),
            input_schema: schema(tool, &tool.input_schema).ok()?,
            output_schema: output_schema.transpose().ok()?.flatten(),
            on_crash: tool.on_crash(),
            backend: self.server.backend(&tool.name),
        })
    }
}

/// A tool's schema; one that is not valid is not used. The error is that the tool cannot be offered, because its calls could
/// not be checked.
fn schema(tool: &Tool, text: &Json) -> Result<Option<Schema>, InvalidSchema> {
    match Schema::new(text.clone()) {
        Ok(schema) => Ok(Some(schema)),
        Err(error @ InvalidSchema::TooComplex) => {
            tracing::warn!(tool = %tool.name, %error, "the tool is not offered");
            Err(error)
        }
        Err(error @ InvalidSchema::Invalid(_)) => {
            tracing::warn!(tool = %tool.name, %error, "a schema of the tool is not used");
            Ok(None)
        }
    }
}

/// The backend of a tool that cannot be called.
struct Unusable {
    reason: &'static str,
    retryable: bool,
}

impl Unusable {
    const NOT_RUNNING: Self = Self { reason: "the MCP server is not running", retryable: true };
    const SCHEMA: Self = Self {
        reason: "the tool cannot be called: its JSON Schema is too complex to check calls with",
        retryable: false,
    };
}

impl Backend for Unusable {
    fn call<'a>(&'a self, _call: Call<'a>) -> BoxFuture<'a, AgentResult<Reply>> {
        let reply = if self.retryable { Reply::retry(self.reason) } else { Reply::fail(self.reason) };
        Box::pin(async move { Ok(reply) })
    }
}
