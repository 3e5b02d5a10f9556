//! The agents of a server as agents of this process, which pass each turn on.

mod follow;

use std::{collections::HashMap, sync::Arc};

use client::{Client, ClientOptions, Error};
use engine::{
    AgentInfo, AgentSettings, Catalog, DeclaredSchema, DynAgent, RegisteredAgent, Skill, SkillInput,
    SkillSchema, SkillSet,
};
use futures_util::{StreamExt as _, stream};
use outbound::{
    backends::a2a::{OpenCalls, RemoteAgent},
    skill::SCHEMAS_EXTENSION,
};
use protocol::{
    AgentCard, Json,
    json::read::{Node, Path, Read},
};

use crate::cli::calls::directory::{Directory, ListedAgent};

use crate::cli::failure::{Failure, code};
pub(super) use follow::{ListWatch, follow};

/// Cards that are requested concurrently.
const CONCURRENT_REQUESTS: usize = 8;

/// The agents of a server, as they were read last.
pub(super) struct RemoteAgents {
    url: String,
    options: ClientOptions,
    default_agent: String,
    agents: Vec<KnownAgent>,
    calls: Arc<OpenCalls>,
}

/// An agent that can be called.
#[derive(Clone)]
struct KnownAgent {
    /// As the server lists it; empty if the server does not list its agents.
    id: String,
    card: AgentCard,
    client: Arc<Client>,
}

/// An agent that cannot be called.
struct UnusableAgent {
    id: String,
    error: Error,
}

/// The result of reading the agents again.
struct RefreshResult {
    /// Whether agents, skills or schemas differ from those before.
    is_changed: bool,
    unusable: Vec<UnusableAgent>,
}

impl RemoteAgents {
    /// Reads the agents; an error if none can be called.
    pub(super) async fn read(url: String, options: ClientOptions) -> Result<Self, Failure> {
        let (default_agent, agents, calls) = (String::new(), Vec::new(), Arc::default());
        let mut remote = Self { url, options, default_agent, agents, calls };
        for UnusableAgent { id, error } in remote.refresh().await?.unusable {
            if id.is_empty() {
                return Err(error.into());
            }
            tracing::warn!(agent = id, %error, "the agent is left out");
        }
        if remote.agents.is_empty() {
            let text = format!("no agent of {} has a card that can be read", remote.url);
            return Err(Failure::new(code::NOT_FOUND, text));
        }
        Ok(remote)
    }

    /// Reads the agents again. One whose card cannot be read stays as it was.
    async fn refresh(&mut self) -> Result<RefreshResult, Error> {
        let Directory { default_agent, agents: listed, .. } =
            Directory::list(&self.url, &self.options).await?;
        let found = stream::iter(listed).map(|agent| self.find(agent)).buffered(CONCURRENT_REQUESTS);
        let found: Vec<Result<KnownAgent, UnusableAgent>> = found.collect().await;
        let (mut agents, mut unusable) = (Vec::new(), Vec::new());
        for one in found {
            match one {
                Ok(agent) => agents.push(agent),
                Err(problem) => {
                    agents.extend(self.known(&problem.id).cloned());
                    unusable.push(problem);
                }
            }
        }
        let is_changed = default_agent != self.default_agent || !are_same(&agents, &self.agents);
        (self.default_agent, self.agents) = (default_agent, agents);
        Ok(RefreshResult { is_changed, unusable })
    }

    fn known(&self, id: &str) -> Option<&KnownAgent> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    async fn find(&self, listed: ListedAgent) -> Result<KnownAgent, UnusableAgent> {
        let unusable = |error| UnusableAgent { id: listed.id.clone(), error };
        let found = client::find_card(&listed.url, &self.options).await.map_err(unusable)?;
        if let Some(known) = self.known(&listed.id).filter(|known| known.card == found.card) {
            return Ok(known.clone());
        }
        // A listed agent is called where it was listed, not at the public address on its card.
        let client = match listed.id.as_str() {
            "" => found.client(self.options.clone()),
            _ => found.client_at(&listed.url, self.options.clone()),
        };
        let client = Arc::new(client.map_err(unusable)?);
        Ok(KnownAgent { id: listed.id, card: found.card, client })
    }

    /// What has to end before the process does.
    pub(super) fn calls(&self) -> Arc<OpenCalls> {
        Arc::clone(&self.calls)
    }

    /// The catalog of the agents that were read last.
    pub(super) fn catalog(&self) -> Catalog {
        let registered: Vec<RegisteredAgent> =
            self.agents.iter().map(|agent| registered(agent, &self.calls)).collect();
        let is_listed = registered.iter().any(|agent| agent.info().id == self.default_agent);
        let first = registered.first().filter(|_| !is_listed);
        let default_agent = first.map_or_else(|| self.default_agent.clone(), |first| first.info().id.clone());
        Catalog::new(default_agent, registered)
    }
}

fn are_same(agents: &[KnownAgent], before: &[KnownAgent]) -> bool {
    let pairs = || agents.iter().zip(before);
    agents.len() == before.len() && pairs().all(|(one, other)| one.id == other.id && one.card == other.card)
}

fn registered(agent: &KnownAgent, calls: &Arc<OpenCalls>) -> RegisteredAgent {
    let KnownAgent { id, card, client } = agent;
    let card = card.clone();
    let mut schemas = schemas(&card);
    let info = AgentInfo {
        id: if id.is_empty() { id_of(&card.name) } else { id.clone() },
        name: card.name,
        description: card.description,
        version: card.version,
        input_modes: card.default_input_modes,
        output_modes: card.default_output_modes,
    };
    let work = DynAgent::new(RemoteAgent::new(Arc::clone(client), Arc::clone(calls)));
    let skills = card.skills.into_iter().map(|card| {
        let (input, output) = schemas.remove(&card.id).unwrap_or_default();
        let input = input.map_or(SkillInput::Message, |schema| SkillInput::Arguments(Some(declared(schema))));
        Skill { input, output: output.map(declared), ..Skill::new(card, work.clone()) }
    });
    let skills = SkillSet::shared(work.clone(), skills.collect::<Vec<_>>());
    // The server checks media types itself.
    let settings = AgentSettings { check_media_types: false, ..AgentSettings::default() };
    RegisteredAgent::new(info, skills).with_settings(settings)
}

/// A schema that the server checks.
fn declared(schema: Json) -> Arc<dyn SkillSchema> {
    Arc::new(DeclaredSchema(schema))
}

/// An id for an agent that its server does not name.
fn id_of(name: &str) -> String {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' }
    };
    let id: String = name.chars().take(64).map(plain).collect();
    let id = id.trim_matches('-');
    if id.is_empty() { "agent".to_owned() } else { id.to_owned() }
}

/// The schemas of arguments and results on a card of a2ad, by skill.
fn schemas(card: &AgentCard) -> HashMap<String, (Option<Json>, Option<Json>)> {
    let extension = card.capabilities.extensions.iter().find(|extension| extension.uri == SCHEMAS_EXTENSION);
    let Some(params) = extension.and_then(|extension| extension.params.as_ref()) else {
        return HashMap::new();
    };
    let read = || -> Read<Vec<_>> {
        Node::new(params.as_raw(), &Path::Root).object()?.entries(|skill, node| {
            let schema = |name: &str| node.object()?.maybe(name, |schema| schema.any());
            Ok((skill.to_owned(), (schema("input")?, schema("output")?)))
        })
    };
    read().unwrap_or_default().into_iter().collect()
}
