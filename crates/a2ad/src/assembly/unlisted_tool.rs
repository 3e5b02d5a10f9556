//! Tools of MCP servers that their servers have not listed, or that cannot be called.

use std::sync::Arc;

use engine::{AgentResult, OnCrash};
use futures_util::future::BoxFuture;
use outbound::{
    backend::{Backend, Call, Reply},
    skill::BackendSkill,
};

/// The tool of a server that is not running as a skill, whose calls fail.
pub(super) fn not_running(server: &str, tool: &str) -> BackendSkill {
    without_schemas(server, tool, Arc::new(UnusableTool::NOT_RUNNING))
}

/// A tool without what its server says about it.
pub(super) fn without_schemas(server: &str, tool: &str, backend: Arc<dyn Backend>) -> BackendSkill {
    let description = format!("The tool {tool} of the MCP server {server}");
    BackendSkill::new(tool, description, OnCrash::Fail, backend)
}

/// The backend of a tool that cannot be called.
pub(super) struct UnusableTool {
    reason: &'static str,
    retryable: bool,
}

impl UnusableTool {
    const NOT_RUNNING: Self = Self { reason: "the MCP server is not running", retryable: true };
    pub(super) const SCHEMA: Self = Self {
        reason: "the tool cannot be called: its JSON Schema is too complex to check calls with",
        retryable: false,
    };
}

impl Backend for UnusableTool {
    fn call<'a>(&'a self, _call: Call<'a>) -> BoxFuture<'a, AgentResult<Reply>> {
        let reply = if self.retryable { Reply::retry(self.reason) } else { Reply::fail(self.reason) };
        Box::pin(async move { Ok(reply) })
    }
}
