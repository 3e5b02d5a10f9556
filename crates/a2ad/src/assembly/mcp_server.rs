//! A running MCP server whose tools are skills.

use std::sync::Arc;

use outbound::{
    backend::Backend,
    backends::mcp::{McpConfig, McpServer, Tool},
    schema::{InvalidSchema, Schema},
    skill::{BackendSkill, InputForm, Interface, is_like, without_property},
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

    /// The configured tools as skills; `None` until it has listed them.
    pub(super) fn skills(&self) -> Option<Vec<BackendSkill>> {
        let is_configured =
            |tool: &&Tool| self.config.tools.iter().any(|pattern| is_like(&tool.name, pattern));
        let interface = &self.config.interface;
        let tools = self.tools()?;
        Some(tools.iter().filter(is_configured).filter_map(|tool| self.skill(tool, interface)).collect())
    }

    /// The patterns of the configuration that match no tool; none until it has listed them.
    pub(super) fn unmatched_patterns(&self) -> Vec<String> {
        let Some(tools) = self.tools() else { return Vec::new() };
        let matches = |pattern: &&String| tools.iter().any(|tool| is_like(&tool.name, pattern));
        let patterns = self.config.tools.iter().filter(|pattern| *pattern != "*");
        patterns.filter(|pattern| !matches(pattern)).cloned().collect()
    }

    /// One tool as a skill. Without its schemas if the server has not listed it; its calls fail if they are too complex.
    pub(super) fn tool_skill(&self, tool: &str, interface: Interface) -> BackendSkill {
        let interface = interface.or(&self.config.interface);
        let listed = self.tools().and_then(|tools| tools.iter().find(|one| one.name == tool).cloned());
        let server = &self.config.name;
        match listed {
            Some(listed) => self
                .skill(&listed, &interface)
                .unwrap_or_else(|| without_schemas(server, tool, Arc::new(UnusableTool::SCHEMA))),
            None => {
                let argument = interface.message_argument.as_deref().filter(|_| interface.takes_message());
                let backend = self.backend(tool, argument);
                BackendSkill { interface, ..without_schemas(server, tool, backend) }
            }
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
    fn skill(&self, tool: &Tool, interface: &Interface) -> Option<BackendSkill> {
        let output_schema = tool.output_schema.as_ref().map(|text| schema(tool, text));
        let argument = interface.message_argument_of(&tool.input_schema);
        // The message is not one of the arguments that clients send.
        let without_message = argument.and_then(|name| without_property(&tool.input_schema, name));
        let input = if argument.is_some() { InputForm::Message } else { InputForm::Arguments };
        Some(BackendSkill {
            input_schema: schema(tool, without_message.as_ref().unwrap_or(&tool.input_schema)).ok()?,
            output_schema: output_schema.transpose().ok()?.flatten(),
            interface: Interface { input: Some(input), ..interface.clone() },
            ..BackendSkill::new(
                &tool.name,
                tool.description.clone(),
                tool.on_crash(),
                self.backend(&tool.name, argument),
            )
        })
    }

    /// The backend of a tool; the argument gets the whole message.
    fn backend(&self, tool: &str, message_argument: Option<&str>) -> Arc<dyn Backend> {
        match message_argument {
            Some(argument) => self.server.backend_with_message(tool, argument),
            None => self.server.backend(tool),
        }
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
