//! Starts the backends of a configuration, and follows other configurations: servers that they do not change keep their
//! processes.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use outbound::backends::mcp::{McpConfig, Status};

use super::{BackendConfigs, Backends};
use crate::assembly::{DocumentError, mcp_server::RunningServer};

/// How long a start waits for the tools of MCP servers, so that tasks left by the last process find their skills.
const FIRST_LIST: Duration = Duration::from_secs(15);

/// Which documents are fetched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// All of them.
    All,
    /// Those whose configuration has changed.
    Changed,
}

impl Backends {
    /// Starts the MCP servers and loads the OpenAPI documents, and waits until each server has listed its tools or has
    /// failed to start, but not for long. A server that failed is started again in the background, and its tools are
    /// added later.
    ///
    /// # Errors
    ///
    /// A document cannot be fetched or is not valid.
    pub async fn start(configs: &BackendConfigs) -> Result<Self, DocumentError> {
        let start = |(name, server): (&String, _)| (name.clone(), RunningServer::start(server, configs));
        let mut backends = Self { servers: configs.mcp.iter().map(start).collect(), ..Self::default() };
        for (name, document) in &configs.openapi {
            backends.operations.insert(name.clone(), document.skills(&configs.dialer).await?);
        }
        first_lists(backends.servers.values()).await;
        for (name, running) in &mut backends.servers {
            running.warn_if_unlisted(name);
        }
        Ok(backends)
    }

    /// Starts one MCP server for a trial, and waits until it has listed its tools or has failed to start.
    pub async fn start_one(configs: &BackendConfigs, name: &str) -> Self {
        let started =
            configs.mcp.get(name).map(|server| (name.to_owned(), RunningServer::start(server, configs)));
        let backends = Self { servers: started.into_iter().collect(), ..Self::default() };
        first_lists(backends.servers.values()).await;
        backends
    }

    /// Follows a new configuration. A server that it changes is replaced when the new one has listed its tools, so that
    /// there are no calls meanwhile that find none. A server that it removes stops when its last call has ended.
    ///
    /// # Errors
    ///
    /// A document cannot be fetched or is not valid. Then nothing has changed.
    pub async fn update(
        &mut self,
        old: &BackendConfigs,
        new: &BackendConfigs,
        fetch: Fetch,
    ) -> Result<(), DocumentError> {
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
        let changed = |(name, server): &(&String, &McpConfig)| {
            self.servers.get(*name).is_none_or(|running| running.config != **server)
        };
        let mut started: BTreeMap<String, RunningServer> = new
            .mcp
            .iter()
            .filter(changed)
            .map(|(name, server)| (name.clone(), RunningServer::start(server, new)))
            .collect();
        let replacements = started.iter().filter(|(name, _)| self.servers.contains_key(*name));
        first_lists(replacements.map(|(_, running)| running)).await;
        for (name, running) in &mut started {
            running.mark_unchanged();
            if self.servers.contains_key(name) {
                running.warn_if_unlisted(name);
            }
        }
        self.servers.retain(|name, _| new.mcp.contains_key(name));
        self.servers.extend(started);
        self.operations = operations;
        Ok(())
    }

    /// Why an MCP server does not work, with the end of what it wrote to standard error.
    pub fn problem(&self, name: &str) -> String {
        let Some(running) = self.servers.get(name) else { return "it was not started".into() };
        let health = running.server.health();
        let last = health.stderr_tail.trim().lines().last().unwrap_or_default().to_owned();
        match &health.status {
            // It may say that itself.
            Status::BackingOff { error, .. } | Status::Failed { error } if error.contains(&last) => {
                error.clone()
            }
            Status::BackingOff { error, .. } | Status::Failed { error } => format!("{error} ({last})"),
            Status::Starting | Status::Ready => format!("no answer within {} s", FIRST_LIST.as_secs()),
        }
    }
}

/// Waits until servers have listed their tools or have failed to start. One that needs longer is reported by the caller.
async fn first_lists(started: impl Iterator<Item = &RunningServer>) {
    let started = join_all(started.map(|running| running.server.first_start()));
    let _ = tokio::time::timeout(FIRST_LIST, started).await;
}
