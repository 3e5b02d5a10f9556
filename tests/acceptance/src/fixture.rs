//! The server under test, with clients for its agents. Checks can have further servers from `servers.rs`.

mod servers;

use std::sync::Arc;

use super::{
    CheckError,
    backend::Backend,
    http::{Response, Server},
    test_client::TestClient,
};

pub(crate) use servers::{MANY_SKILLS, Servers, start_server};

/// The main server with agents of one kind of backend.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    backend: Backend,
    servers: Arc<Servers>,
}

impl Fixture {
    pub(crate) async fn new(servers: Arc<Servers>, backend: Backend) -> Result<Self, CheckError> {
        let server = servers.main(backend).await?.clone();
        Ok(Self { server, backend, servers })
    }

    /// Whether the agents are those that come with the program.
    pub(crate) fn is_builtin(&self) -> bool {
        self.backend == Backend::Builtin
    }

    /// The default agent at a path.
    fn default(&self, path: &str, skill: &'static str) -> TestClient {
        TestClient::new(&self.server, path, skill)
    }

    /// The default agent with the profile `neutral`. It may send notifications to receivers in this process.
    pub(crate) fn root(&self, skill: &'static str) -> TestClient {
        self.default("/", skill)
    }

    /// The default agent with the profile `fold`.
    pub(crate) fn fold(&self, skill: &'static str) -> TestClient {
        self.default("/_a2a/", skill)
    }

    /// The default agent with the profile `agent-native`.
    pub(crate) fn native(&self, skill: &'static str) -> TestClient {
        self.default("/_agent-native/a2a", skill)
    }

    /// The default agent with the profile `agentos`.
    pub(crate) fn agentos(&self, skill: &'static str) -> TestClient {
        self.default("/a2a/rpc", skill)
    }

    /// An agent at its own path.
    pub(crate) fn agent(&self, name: &str, skill: &'static str) -> TestClient {
        self.default(&format!("/a2a/{name}"), skill)
    }

    /// The card of the default agent at the draft's path, `agent.json`.
    pub(crate) async fn draft_card(&self) -> Result<Response, CheckError> {
        let card = self.server.get("/.well-known/agent.json", &[]).await?;
        card.has_status(200)?;
        Ok(card)
    }

    /// The card of an agent; `file` is `agent-card.json` or `agent.json`.
    pub(crate) async fn card(&self, name: &str, file: &str) -> Result<Response, CheckError> {
        let card = self.server.get(&format!("/a2a/{name}/.well-known/{file}"), &[]).await?;
        card.has_status(200)?;
        Ok(card)
    }
}
