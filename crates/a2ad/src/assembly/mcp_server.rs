//! A running MCP server whose tools are skills.

use std::sync::Arc;

use outbound::{
    backends::mcp::{McpConfig, McpServer, Tool},
    schema::{InvalidSchema, Schema},
    skill::BackendSkill,
};
use protocol::Json;
use tokio::sync::watch;

use super::{
    BackendConfigs,
    unlisted_tool::{UnusableTool, without_schemas},
};

pub(super) struct RunningServer {
    pub(super) config: McpConfig,
    pub(super) server: McpServer,
    tools: watch::Receiver<Option<Arc<[Tool]>>>,
}

impl RunningServer {
    pub(super) fn start(config: &McpConfig, all: &BackendConfigs) -> Self {
        let server = McpServer::start(config.clone(), all.launcher.clone(), all.dialer.clone());
        let tools = server.tools();
        Self { config: config.clone(), server, tools }
    }

    /// The tools; `None` until it has listed them.
    pub(super) fn tools(&self) -> Option<Arc<[Tool]>> {
        self.tools.borrow().clone()
    }

    /// All tools as skills; `None` until it has listed them.
    pub(super) fn skills(&self) -> Option<Vec<BackendSkill>> {
        Some(self.tools()?.iter().filter_map(|tool| self.skill(tool)).collect())
    }

    /// One tool as a skill. Without its schemas if the server has not listed it; its calls fail if they are too complex.
    pub(super) fn tool_skill(&self, tool: &str) -> BackendSkill {
        let listed = self.tools().and_then(|tools| tools.iter().find(|one| one.name == tool).cloned());
        let server = &self.config.name;
        match listed {
            Some(listed) => self
                .skill(&listed)
                .unwrap_or_else(|| without_schemas(server, tool, Arc::new(UnusableTool::SCHEMA))),
            None => without_schemas(server, tool, self.server.backend(tool)),
        }
    }

    /// The tools as they are now are no change.
    pub(super) fn mark_unchanged(&mut self) {
        self.tools.mark_unchanged();
    }

    pub(super) fn warn_if_unlisted(&mut self, name: &str) {
        if self.tools.borrow_and_update().is_none() {
            let health = self.server.health();
            let (destination, state) = (self.config.transport.target(), health.status.to_string());
            tracing::warn!(server = %name, destination, state, "the MCP server has not listed its tools yet");
        }
    }

    /// Resolves when the tools have changed. Cancel safe.
    pub(super) async fn changed(&mut self) {
        if self.tools.changed().await.is_err() {
            // The server has stopped, so nothing changes any more.
            std::future::pending::<()>().await;
        }
    }

    /// A tool as a skill; `None` if it cannot be offered.
    fn skill(&self, tool: &Tool) -> Option<BackendSkill> {
        let output_schema = tool.output_schema.as_ref().map(|text| schema(tool, text));
        Some(BackendSkill {
            input_schema: schema(tool, &tool.input_schema).ok()?,
            output_schema: output_schema.transpose().ok()?.flatten(),
            ..BackendSkill::new(
                &tool.name,
                tool.description.clone(),
                tool.on_crash(),
                self.server.backend(&tool.name),
            )
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
