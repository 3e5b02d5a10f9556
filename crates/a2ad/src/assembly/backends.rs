//! The running backends of agents: MCP servers and OpenAPI documents, and the records of the calls of all backends.
//!
//! Agents are made from what the servers offer at the moment, and made again when that changes ([`Backends::changed`]).
//! [`Backends::start_in_background`] does not wait for anything; `configured.rs` starts what a configuration names and
//! follows its changes.

#[cfg(all(feature = "mcp", feature = "openapi"))]
mod configured;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::{BoxFuture, FutureExt as _, join_all, select_all};
use outbound::{
    backend::CallRecord,
    dial::Dialer,
    process::Launcher,
    skill::{BackendSkill, Interface},
};
#[cfg(feature = "openapi")]
use tokio::task::JoinSet;

#[cfg(feature = "openapi")]
use super::Document;
#[cfg(feature = "mcp")]
use super::mcp_server::RunningServer;
use super::{
    Provider, SkillAgent, SkillBackend, SkillConfig, SkillSource,
    reports::{BackendName, BackendSource, WatchedBackend},
    unlisted_tool::not_running,
};
#[cfg(all(feature = "mcp", feature = "openapi"))]
pub use configured::Fetch;

/// What is started.
#[derive(Debug, Default)]
pub struct BackendConfigs {
    /// MCP servers by name.
    #[cfg(feature = "mcp")]
    pub mcp: BTreeMap<String, outbound::backends::mcp::McpConfig>,
    /// OpenAPI documents by name.
    #[cfg(feature = "openapi")]
    pub openapi: BTreeMap<String, Document>,
    /// What every request is sent with.
    pub dialer: Dialer,
    /// What starts processes.
    pub launcher: Launcher,
}

/// What runs.
#[derive(Default)]
pub struct Backends {
    #[cfg(feature = "mcp")]
    servers: BTreeMap<String, RunningServer>,
    /// By the name of the document.
    #[cfg(feature = "openapi")]
    operations: BTreeMap<String, Vec<BackendSkill>>,
    /// The documents that are still being fetched, with their names.
    #[cfg(feature = "openapi")]
    fetches: JoinSet<(String, Vec<BackendSkill>)>,
    /// What is known about the calls of each backend; kept over reloads.
    records: Mutex<BTreeMap<BackendName, Arc<CallRecord>>>,
}

impl Backends {
    /// Nothing is running; known are the operations of documents that were read already.
    #[cfg(feature = "openapi")]
    pub fn not_started(documents: &BTreeMap<String, Document>) -> Self {
        Self { operations: documents.iter().filter_map(read_already).collect(), ..Self::default() }
    }

    /// Starts the MCP servers and begins to fetch the documents. What they offer is added when it is known. Must be called
    /// within a Tokio runtime.
    #[cfg_attr(
        not(feature = "openapi"),
        expect(clippy::needless_pass_by_value, reason = "documents are moved")
    )]
    pub(crate) fn start_in_background(configs: BackendConfigs) -> Self {
        #[cfg(feature = "openapi")]
        let mut backends = Self::not_started(&configs.openapi);
        #[cfg(not(feature = "openapi"))]
        let mut backends = Self::default();
        #[cfg(feature = "mcp")]
        for (name, server) in &configs.mcp {
            backends.servers.insert(name.clone(), RunningServer::start(server, &configs));
        }
        #[cfg(feature = "openapi")]
        for (name, document) in configs.openapi {
            if !backends.operations.contains_key(&name) {
                let dialer = configs.dialer.clone();
                backends.fetches.spawn(async move { (name, document.fetched(&dialer).await) });
            }
        }
        backends
    }

    /// The skills that a server or a document has; `None` until they are known, and if it is not running.
    pub fn provided(&self, by: &Provider) -> Option<Vec<BackendSkill>> {
        let skills: Vec<BackendSkill> = match by {
            #[cfg(feature = "mcp")]
            Provider::Mcp(server) => self.servers.get(server)?.skills()?,
            #[cfg(feature = "openapi")]
            Provider::OpenApi(document) => self.operations.get(document)?.clone(),
            #[cfg(not(all(feature = "mcp", feature = "openapi")))]
            _ => return None,
        };
        Some(skills.into_iter().map(|skill| self.recorded(by.kind(), by.name(), skill)).collect())
    }

    /// Whether the skills of a server or a document are known.
    pub(super) fn is_known(&self, provider: &Provider) -> bool {
        match provider {
            #[cfg(feature = "mcp")]
            Provider::Mcp(server) => self.servers.get(server).is_some_and(|server| server.tools().is_some()),
            #[cfg(feature = "openapi")]
            Provider::OpenApi(document) => self.operations.contains_key(document),
            #[cfg(not(all(feature = "mcp", feature = "openapi")))]
            _ => false,
        }
    }

    /// The names of the tools of an MCP server; `None` until it has listed them, and if it is not running.
    #[cfg(feature = "mcp")]
    pub(super) fn tool_names(&self, server: &str) -> Option<Vec<String>> {
        let tools = self.servers.get(server)?.tools()?;
        Some(tools.iter().map(|tool| tool.name.clone()).collect())
    }

    /// The patterns of the configuration of an MCP server that match none of its tools.
    #[cfg(feature = "mcp")]
    pub(super) fn unmatched_patterns(&self, server: &str) -> Vec<String> {
        self.servers.get(server).map(RunningServer::unmatched_patterns).unwrap_or_default()
    }

    /// One tool as a skill; its server may not have listed it.
    #[cfg_attr(not(feature = "mcp"), expect(unused_variables, reason = "no server is running"))]
    pub(super) fn tool_skill(&self, server: &str, tool: &str, interface: &Interface) -> BackendSkill {
        #[cfg(feature = "mcp")]
        let running = self.servers.get(server).map(|running| running.tool_skill(tool, interface.clone()));
        #[cfg(feature = "mcp")]
        let skill = running.unwrap_or_else(|| not_running(server, tool));
        #[cfg(not(feature = "mcp"))]
        let skill = not_running(server, tool);
        self.recorded("mcp", server, skill)
    }

    /// A skill whose calls are recorded under the name of its backend.
    pub(super) fn recorded(&self, kind: &'static str, name: &str, skill: BackendSkill) -> BackendSkill {
        BackendSkill { record: self.record((name.to_owned(), kind)), ..skill }
    }

    /// The backends of these agents, for operators. Records of other backends are dropped.
    pub(super) fn watched<'a>(
        &self,
        agents: impl Iterator<Item = &'a SkillAgent>,
    ) -> BTreeMap<BackendName, WatchedBackend> {
        let mut sources: BTreeMap<BackendName, BackendSource> = agents
            .flat_map(|agent| &agent.skills)
            .filter_map(|source| match source {
                SkillSource::Own(SkillConfig { id, backend: SkillBackend::Ready { kind, .. }, .. }) => {
                    Some(((id.clone(), *kind), BackendSource::Skill))
                }
                SkillSource::Own(_) | SkillSource::Provided { .. } => None,
            })
            .collect();
        #[cfg(feature = "mcp")]
        sources.extend(
            self.servers
                .iter()
                .map(|(name, running)| ((name.clone(), "mcp"), BackendSource::Mcp(running.server.clone()))),
        );
        #[cfg(feature = "openapi")]
        sources.extend(
            self.operations.iter().map(|(name, operations)| {
                ((name.clone(), "openapi"), BackendSource::OpenApi(operations.len()))
            }),
        );
        self.records().retain(|name, _| sources.contains_key(name));
        let watched = |(name, source): (BackendName, BackendSource)| {
            let record = self.record(name.clone());
            (name, WatchedBackend { record, source })
        };
        sources.into_iter().map(watched).collect()
    }

    fn record(&self, name: BackendName) -> Arc<CallRecord> {
        Arc::clone(self.records().entry(name).or_default())
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<BackendName, Arc<CallRecord>>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when a server or a document has other skills. Cancel safe.
    pub async fn changed(&mut self) {
        let mut changes: Vec<BoxFuture<'_, ()>> = vec![Box::pin(std::future::pending())];
        #[cfg(feature = "mcp")]
        changes.extend(self.servers.values_mut().map(|running| running.changed().boxed()));
        #[cfg(feature = "openapi")]
        changes.push(Box::pin(add_fetched(&mut self.fetches, &mut self.operations)));
        select_all(changes).await;
    }

    /// Ends all processes.
    pub async fn stop(&self) {
        #[cfg(feature = "mcp")]
        join_all(self.servers.values().map(|running| running.server.stop())).await;
    }
}

/// Resolves when a document has been fetched. Cancel safe.
#[cfg(feature = "openapi")]
async fn add_fetched(
    fetches: &mut JoinSet<(String, Vec<BackendSkill>)>,
    operations: &mut BTreeMap<String, Vec<BackendSkill>>,
) {
    match fetches.join_next().await {
        Some(Ok((name, skills))) => {
            operations.insert(name, skills);
        }
        Some(Err(_)) | None => std::future::pending().await,
    }
}

#[cfg(feature = "openapi")]
fn read_already((name, document): (&String, &Document)) -> Option<(String, Vec<BackendSkill>)> {
    match document {
        Document::Read(skills) => Some((name.clone(), skills.clone())),
        Document::Fetched { .. } => None,
    }
}
