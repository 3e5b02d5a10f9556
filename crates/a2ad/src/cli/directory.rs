//! The agents of a server: an a2ad lists them at its root; of another server, the one whose card it shows.

use client::{Error, Options};
use futures_util::{StreamExt as _, stream};
use protocol::{
    Json,
    json::read::{Node, Path, Read},
    model::AgentSkill,
};

/// How many cards are read at a time.
const AT_A_TIME: usize = 8;

/// What a server serves.
pub(super) struct Directory {
    /// The server's URL.
    pub(super) server: String,
    /// The id of the agent at its root; empty where the server does not list its agents.
    pub(super) default_agent: String,
    pub(super) agents: Vec<Listed>,
}

/// One agent.
pub(super) struct Listed {
    /// Its name below `/a2a/`; empty where the server does not list its agents.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) url: String,
    /// Whether it takes calls without credentials, where that is known.
    pub(super) anonymous: Option<bool>,
    pub(super) skills: Vec<AgentSkill>,
    /// Why its card cannot be read.
    pub(super) problem: Option<String>,
}

impl Directory {
    /// Asks a server. Where it does not list agents, its own card is the only one.
    pub(super) async fn read(server: &str, options: &Options) -> Result<Self, Error> {
        let (status, body) = client::get(&format!("{server}/"), options).await?;
        let listed = String::from_utf8(body).ok().filter(|_| status.is_success());
        let Some((default_agent, agents)) = listed.and_then(|body| list(server, &body)) else {
            let found = client::find_card(server, options).await?;
            let mut only = Listed::new(String::new(), server.to_owned(), None);
            only.take(found.card);
            return Ok(Self { server: server.to_owned(), default_agent: String::new(), agents: vec![only] });
        };
        let with_cards = stream::iter(agents).map(|agent| agent.with_card(options)).buffered(AT_A_TIME);
        Ok(Self { server: server.to_owned(), default_agent, agents: with_cards.collect().await })
    }
}

impl Listed {
    fn new(id: String, url: String, anonymous: Option<bool>) -> Self {
        let (name, description) = (String::new(), String::new());
        Self { id, name, description, url, anonymous, skills: Vec::new(), problem: None }
    }

    fn take(&mut self, card: protocol::AgentCard) {
        (self.name, self.description, self.skills) = (card.name, card.description, card.skills);
    }

    async fn with_card(mut self, options: &Options) -> Self {
        match client::find_card(&self.url, options).await {
            Ok(found) => self.take(found.card),
            Err(error) => self.problem = Some(error.to_string()),
        }
        self
    }
}

/// The default agent and all agents of the list at an a2ad's root; `None` where it is something else.
fn list(server: &str, body: &str) -> Option<(String, Vec<Listed>)> {
    let document = Json::parse(body).ok()?;
    let root = Node::new(document.as_raw(), &Path::Root).object().ok()?;
    if root.text("name").ok()?.as_deref() != Some("a2ad") {
        return None;
    }
    let agent = |node: Node<'_, '_>| -> Read<Listed> {
        let object = node.object()?;
        let id = object.need_text("id")?;
        // Where it was asked, whatever public address it has for others.
        let mut listed = Listed::new(id.clone(), format!("{server}/a2a/{id}"), object.flag("anonymous")?);
        (listed.name, listed.description) =
            (object.text_or_empty("name")?, object.text_or_empty("description")?);
        Ok(listed)
    };
    Some((root.text_or_empty("defaultAgent").ok()?, root.list("agents", agent).ok()?))
}
