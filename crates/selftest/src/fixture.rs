//! The server under test, with clients for its agents. When the selftest starts servers itself, checks can have further
//! ones from `own_servers.rs`.

mod own_servers;

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use super::{
    CheckError, Program,
    http::{Response, Server},
    json::{ValueChecks as _, quote},
    test_client::{TestClient, request, unique_id},
};

use own_servers::OwnServers;
pub(crate) use own_servers::{MANY_SKILLS, start_server};

/// The agents that checks use by name.
const AGENTS: [&str; 9] =
    ["pinkfish", "agent-native", "agentos", "fold", "terse", "quiet", "unnotified", "keyed", "brief"];

/// The server under test and what it offers.
pub(crate) struct Fixture {
    pub(crate) program: Arc<dyn Program>,
    pub(crate) server: Server,
    /// Those of [`AGENTS`] that the server has.
    agents: BTreeSet<&'static str>,
    /// The skill ids of the default agent.
    skills: HashSet<String>,
    /// Whether the default agent's card offers streaming.
    streams: bool,
    /// The agents of a server at a URL that refuse calls without a credential, by their paths.
    protected: BTreeSet<String>,
    /// `None` for a server at a URL.
    own: Option<OwnServers>,
}

impl Fixture {
    /// Starts a server with the embedded configuration, after text replacements (from, to).
    pub(crate) async fn start(
        program: Arc<dyn Program>,
        executable: std::path::PathBuf,
        changes: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let own = OwnServers::start(executable, changes).await?;
        let server = own.main_server().clone();
        Ok(Self { own: Some(own), ..Self::of(program, server).await? })
    }

    /// Takes a running server as it is.
    pub(crate) async fn at_url(program: Arc<dyn Program>, server: Server) -> anyhow::Result<Self> {
        let fixture = Self::of(program, server).await?;
        let paths = fixture.agents.iter().map(|name| agent_path(name)).chain([DEFAULT_AGENT.to_owned()]);
        let mut protected = BTreeSet::new();
        for path in paths {
            if requires_credential(&fixture.server, &path).await.map_err(to_anyhow)? {
                protected.insert(path);
            }
        }
        Ok(Self { protected, ..fixture })
    }

    /// Reads the cards of a running server to find out which agents and skills it offers.
    async fn of(program: Arc<dyn Program>, server: Server) -> anyhow::Result<Self> {
        let mut agents = BTreeSet::new();
        for name in AGENTS {
            let card = server.get(&format!("/a2a/{name}/.well-known/agent-card.json"), &[]).await;
            if card.map_err(to_anyhow)?.status() == 200 {
                agents.insert(name);
            }
        }
        let card = server.get("/.well-known/agent-card.json", &[]).await.map_err(to_anyhow)?;
        let ids = card.list("skills").unwrap_or_default().iter().filter_map(|skill| skill.text("id").ok());
        let skills = ids.map(str::to_owned).collect();
        let streams = card.is("capabilities.streaming", true).is_ok();
        Ok(Self { program, server, agents, skills, streams, protected: BTreeSet::new(), own: None })
    }

    /// Whether the selftest started the server; then every agent and skill must be present.
    pub(crate) fn is_self_started(&self) -> bool {
        self.own.is_some()
    }

    /// The default agent at a path, with one of its skills.
    fn default(&self, path: &str, skill: &'static str) -> Result<TestClient, CheckError> {
        if !self.skills.contains(skill) {
            return Err(CheckError::NotOffered(format!("skill {skill} of the default agent")));
        }
        self.accepts_anonymous_calls(DEFAULT_AGENT)?;
        Ok(TestClient { streaming_offered: self.streams, ..TestClient::new(&self.server, path, skill) })
    }

    /// Whether the agent at this path can be called without a credential; the selftest has none for a server at a URL.
    fn accepts_anonymous_calls(&self, path: &str) -> Result<(), CheckError> {
        match self.protected.contains(path) {
            false => Ok(()),
            true => Err(CheckError::NotOffered(format!("calls without a credential at {path}"))),
        }
    }

    /// The server, if its default agent can be called without a credential.
    pub(crate) fn callable_server(&self) -> Result<&Server, CheckError> {
        self.accepts_anonymous_calls(DEFAULT_AGENT)?;
        Ok(&self.server)
    }

    /// The default agent with the profile `neutral`.
    pub(crate) fn root(&self, skill: &'static str) -> Result<TestClient, CheckError> {
        self.default("/", skill)
    }

    /// The default agent with the profile `fold`.
    pub(crate) fn fold(&self, skill: &'static str) -> Result<TestClient, CheckError> {
        self.default("/_a2a/", skill)
    }

    /// The default agent with the profile `agent-native`.
    pub(crate) fn native(&self, skill: &'static str) -> Result<TestClient, CheckError> {
        self.default("/_agent-native/a2a", skill)
    }

    /// The default agent with the profile `agentos`.
    pub(crate) fn agentos(&self, skill: &'static str) -> Result<TestClient, CheckError> {
        self.default("/a2a/rpc", skill)
    }

    /// An agent at its own path.
    pub(crate) fn agent(&self, name: &'static str, skill: &'static str) -> Result<TestClient, CheckError> {
        let path = self.path_of(name)?;
        self.accepts_anonymous_calls(&path)?;
        Ok(TestClient::new(&self.server, path, skill))
    }

    fn path_of(&self, name: &'static str) -> Result<String, CheckError> {
        if self.agents.contains(name) {
            Ok(agent_path(name))
        } else {
            Err(CheckError::NotOffered(format!("agent {name}")))
        }
    }

    /// Those of these agents that the server has; a server that the selftest started must have all of them.
    pub(crate) fn agents(
        &self,
        names: &'static [&'static str],
        skill: &'static str,
    ) -> Result<Vec<TestClient>, CheckError> {
        let wanted = names.iter().filter(|name| self.is_self_started() || self.agents.contains(**name));
        wanted.map(|name| self.agent(name, skill)).collect()
    }

    /// The card of the default agent at the draft's path, `agent.json`.
    pub(crate) async fn draft_card(&self) -> Result<Response, CheckError> {
        let card = self.server.get("/.well-known/agent.json", &[]).await?;
        card.has_status(200)?;
        Ok(card)
    }

    /// The card of an agent; `file` is `agent-card.json` or `agent.json`.
    pub(crate) async fn card(&self, name: &'static str, file: &str) -> Result<Response, CheckError> {
        let path = self.path_of(name)?;
        let card = self.server.get(&format!("{path}/.well-known/{file}"), &[]).await?;
        card.has_status(200)?;
        Ok(card)
    }

    /// The cards at the draft's path of those of these agents that the server has; a server that the selftest started
    /// must have all of them.
    pub(crate) async fn draft_cards(
        &self,
        names: &'static [&'static str],
    ) -> Result<Vec<Response>, CheckError> {
        let mut cards = Vec::new();
        for name in names.iter().filter(|name| self.is_self_started() || self.agents.contains(**name)) {
            cards.push(self.card(name, "agent.json").await?);
        }
        Ok(cards)
    }
}

/// The path of the default agent.
const DEFAULT_AGENT: &str = "/";

fn agent_path(name: &str) -> String {
    format!("/a2a/{name}")
}

/// Whether an agent refuses a call without a credential. The call reads a task that does not exist.
async fn requires_credential(server: &Server, path: &str) -> Result<bool, CheckError> {
    let unknown = format!(r#"{{"id":{}}}"#, quote(&unique_id()));
    let response = server.post(path, &request("tasks/get", &unknown)).await?;
    Ok(matches!(response.status(), 401 | 403 | 503))
}

fn to_anyhow(error: CheckError) -> anyhow::Error {
    match error {
        CheckError::Mismatch { expected, got } => anyhow::anyhow!("expected {expected}, got {got}"),
        CheckError::NotOffered(reason) | CheckError::PartlyChecked(reason) => anyhow::anyhow!(reason),
    }
}
