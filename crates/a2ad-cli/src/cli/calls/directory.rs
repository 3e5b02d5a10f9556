//! The agents of a server. An a2ad server lists them at its root; any other server is represented by its own card.

use client::{ClientOptions, Error};
use futures_util::{StreamExt as _, stream};
use protocol::{
    Json,
    json::read::{Node, Path, Read},
    model::AgentSkill,
};

/// Cards that are requested concurrently.
const CONCURRENT_REQUESTS: usize = 8;

/// The agents of one server.
pub(crate) struct Directory {
    /// The server's URL.
    pub(crate) server: String,
    /// The id of the agent at the root; empty if the server does not list its agents.
    pub(crate) default_agent: String,
    pub(crate) agents: Vec<ListedAgent>,
}

pub(crate) struct ListedAgent {
    /// The path segment below `/a2a/`; empty if the server does not list its agents.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) url: String,
    /// Whether it accepts calls without credentials; `None` if unknown.
    pub(crate) anonymous: Option<bool>,
    pub(crate) skills: Vec<AgentSkill>,
    /// Why its card could not be read.
    pub(crate) problem: Option<String>,
}

impl Directory {
    /// Requests the list and the cards. A server that has no list is represented by its own card.
    pub(crate) async fn read(server: &str, options: &ClientOptions) -> Result<Self, Error> {
        let mut directory = Self::list(server, options).await?;
        if !directory.is_listed() {
            let found = client::find_card(server, options).await?;
            directory.agents.iter_mut().for_each(|only| only.set_card(found.card.clone()));
            return Ok(directory);
        }
        let with_cards = stream::iter(directory.agents)
            .map(|agent| agent.with_card(options))
            .buffered(CONCURRENT_REQUESTS);
        Ok(Self { agents: with_cards.collect().await, ..directory })
    }

    /// Requests the list without the cards. A server that has none is represented by one agent without an id.
    pub(crate) async fn list(server: &str, options: &ClientOptions) -> Result<Self, Error> {
        let (status, body) = client::get(&format!("{server}/"), options).await?;
        let listed = String::from_utf8(body).ok().filter(|_| status.is_success());
        let (default_agent, agents) = listed.and_then(|body| list(server, &body)).unwrap_or_else(|| {
            (String::new(), vec![ListedAgent::new(String::new(), server.to_owned(), None)])
        });
        Ok(Self { server: server.to_owned(), default_agent, agents })
    }

    /// Whether the server lists its agents.
    fn is_listed(&self) -> bool {
        self.agents.iter().all(|agent| !agent.id.is_empty())
    }
}

impl ListedAgent {
    fn new(id: String, url: String, anonymous: Option<bool>) -> Self {
        let (name, description) = (String::new(), String::new());
        Self { id, name, description, url, anonymous, skills: Vec::new(), problem: None }
    }

    fn set_card(&mut self, card: protocol::AgentCard) {
        (self.name, self.description, self.skills) = (card.name, card.description, card.skills);
    }

    async fn with_card(mut self, options: &ClientOptions) -> Self {
        match client::find_card(&self.url, options).await {
            Ok(found) => self.set_card(found.card),
            Err(error) => self.problem = Some(error.to_string()),
        }
        self
    }
}

/// Parses the list at the root of an a2ad server: the default agent and all agents. `None` if it is anything else.
fn list(server: &str, body: &str) -> Option<(String, Vec<ListedAgent>)> {
    let document = Json::parse(body).ok()?;
    let root = Node::new(document.as_raw(), &Path::Root).object().ok()?;
    if root.text("name").ok()?.as_deref() != Some("a2ad") {
        return None;
    }
    let agent = |node: Node<'_, '_>| -> Read<ListedAgent> {
        let object = node.object()?;
        let id = object.need_text("id")?;
        // At the requested server, not at the public address of its card.
        let mut listed =
            ListedAgent::new(id.clone(), format!("{server}/a2a/{id}"), object.flag("anonymous")?);
        (listed.name, listed.description) =
            (object.text_or_empty("name")?, object.text_or_empty("description")?);
        Ok(listed)
    };
    Some((root.text_or_empty("defaultAgent").ok()?, root.list("agents", agent).ok()?))
}
