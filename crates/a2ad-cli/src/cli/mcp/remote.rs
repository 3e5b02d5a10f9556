//! The agents of a server as agents of this process, which pass each turn on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use client::{Client, ClientOptions, Follow, FollowEvent};
use engine::{
    Agent, AgentInfo, AgentResult, AgentSettings, Catalog, DynAgent, Outcome, RegisteredAgent, Scope,
    SkillSchemas, Turn,
};
use futures_util::{StreamExt as _, stream};
use outbound::skill::SCHEMAS_EXTENSION;
use protocol::{
    AgentCard, Event, Message, Part, Role, SendMessage, Task, TaskId, TaskState,
    json::read::{Node, Path, Read},
};

use tokio::task::JoinSet;

use super::super::{
    directory::{Directory, ListedAgent},
    failure::{Failure, code},
};

/// Cards that are requested concurrently.
const CONCURRENT_REQUESTS: usize = 8;

/// The agents of a server that can be called.
pub(super) async fn catalog(url: &str, options: &ClientOptions) -> Result<Catalog, Failure> {
    let Directory { default_agent, agents, .. } = Directory::read(url, options).await?;
    let found = stream::iter(agents).map(|agent| register(agent, options)).buffered(CONCURRENT_REQUESTS);
    let registered: Vec<RegisteredAgent> = found.filter_map(|agent| async { agent }).collect().await;
    let Some(first) = registered.first() else {
        return Err(Failure::new(code::NOT_FOUND, format!("no agent of {url} has a card that can be read")));
    };
    let is_listed = registered.iter().any(|agent| agent.info().id == default_agent);
    let default_agent = if is_listed { default_agent } else { first.info().id.clone() };
    Ok(Catalog::new(default_agent, registered))
}

async fn register(listed: ListedAgent, options: &ClientOptions) -> Option<RegisteredAgent> {
    let found = match client::find_card(&listed.url, options).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(agent = listed.id, %error, "the agent is left out: its card cannot be read");
            return None;
        }
    };
    // A listed agent is called where it was listed, not at the public address on its card.
    let client = match listed.id.as_str() {
        "" => found.client(options.clone()),
        _ => found.client_at(&listed.url, options.clone()),
    };
    match client {
        Ok(client) => Some(registered(listed.id, found.card, RemoteAgent::new(client))),
        Err(error) => {
            tracing::warn!(agent = listed.id, %error, "the agent is left out");
            None
        }
    }
}

fn registered(id: String, card: AgentCard, agent: RemoteAgent) -> RegisteredAgent {
    let schemas = schemas(&card);
    let info = AgentInfo {
        id: if id.is_empty() { id_of(&card.name) } else { id },
        name: card.name,
        description: card.description,
        version: card.version,
        skills: card.skills,
        input_modes: card.default_input_modes,
        output_modes: card.default_output_modes,
    };
    // The server checks media types itself.
    let settings = AgentSettings { check_media_types: false, ..AgentSettings::default() };
    let registered = RegisteredAgent::new(info, DynAgent::new(agent)).with_settings(settings);
    schemas
        .into_iter()
        .fold(registered, |registered, (skill, schemas)| registered.with_skill_schemas(skill, schemas))
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

/// The schemas on a card of a2ad.
fn schemas(card: &AgentCard) -> Vec<(String, SkillSchemas)> {
    let extension = card.capabilities.extensions.iter().find(|extension| extension.uri == SCHEMAS_EXTENSION);
    let Some(params) = extension.and_then(|extension| extension.params.as_ref()) else { return Vec::new() };
    let read = || -> Read<Vec<(String, SkillSchemas)>> {
        Node::new(params.as_raw(), &Path::Root).object()?.entries(|skill, node| {
            let schema = |name: &str| node.object()?.maybe(name, |schema| schema.any());
            Ok((skill.to_owned(), SkillSchemas { input: schema("input")?, output: schema("output")? }))
        })
    };
    read().unwrap_or_default()
}

/// Passes each turn on to an agent of a server.
struct RemoteAgent {
    client: Arc<Client>,
    /// The server's tasks that wait for an answer, by the id of ours.
    waiting: Mutex<HashMap<TaskId, TaskId>>,
    cancellations: Mutex<JoinSet<()>>,
}

impl RemoteAgent {
    fn new(client: Client) -> Self {
        Self { client: Arc::new(client), waiting: Mutex::default(), cancellations: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<TaskId, TaskId>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent for RemoteAgent {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let message = Message::new("", Role::User, turn.message.parts.clone());
        let request = SendMessage { skill: turn.skill.clone(), ..SendMessage::new(message) };
        // A task that waits goes on with the answer.
        let request = match self.waiting().remove(&turn.task_id) {
            Some(task) => request.to_task(task),
            None => request,
        };
        let mut follow = Follow::stream(&self.client, request).await?;
        loop {
            // A task that is not known yet is cancelled when its first event arrives.
            let event = tokio::select! {
                biased;
                () = turn.cancel.cancelled(), if follow.task_id().is_some() => {
                    if let Some(task) = follow.task_id() {
                        self.client.cancel(task.clone()).await?;
                    }
                    return Ok(Outcome::fail("the call was cancelled"));
                }
                event = follow.next() => event?,
            };
            match event {
                Some(FollowEvent::Event(Event::Message(message))) => {
                    return Ok(Outcome::done_with(message.parts));
                }
                Some(FollowEvent::Event(Event::Status(update)))
                    if update.status.state == TaskState::Working =>
                {
                    if let Some(message) = update.status.message {
                        turn.progress(message.parts).await?;
                    }
                }
                Some(FollowEvent::Event(_) | FollowEvent::Lost) => {}
                None => break,
            }
        }
        let Some(task) = follow.task() else {
            return Ok(Outcome::fail("the agent sent neither a task nor a message"));
        };
        if task.status.state.is_interrupted() {
            self.waiting().insert(turn.task_id.clone(), task.id.clone());
        }
        Ok(outcome(&turn, task))
    }

    /// Nobody answers the question, so the server's task is canceled too.
    fn abandoned(&self, _scope: &Scope, task: &TaskId) {
        let Some(task) = self.waiting().remove(task) else { return };
        let client = Arc::clone(&self.client);
        let mut cancellations = self.cancellations.lock().unwrap_or_else(PoisonError::into_inner);
        while cancellations.try_join_next().is_some() {}
        cancellations.spawn(async move {
            if let Err(error) = client.cancel(task).await {
                tracing::warn!(%error, "the task of an unanswered question was not canceled");
            }
        });
    }
}

fn outcome(turn: &Turn, task: &Task) -> Outcome {
    let said: Vec<Part> = task.status.message.iter().flat_map(|message| message.parts.clone()).collect();
    let or_text = |text: &str| if said.is_empty() { vec![Part::text(text)] } else { said.clone() };
    match task.status.state {
        TaskState::Completed => {
            let message = (!said.is_empty()).then(|| turn.reply(said));
            Outcome::Done { artifacts: task.artifacts.clone(), message }
        }
        TaskState::InputRequired => Outcome::ask(or_text("the agent asks for input")),
        TaskState::AuthRequired => Outcome::ask_for_credentials(or_text("the agent asks for credentials")),
        TaskState::Rejected => Outcome::reject(or_text("the task was rejected")),
        TaskState::Canceled => Outcome::fail(or_text("the task was canceled at the server")),
        TaskState::Failed | TaskState::Unspecified | TaskState::Submitted | TaskState::Working => {
            Outcome::fail(or_text("the task failed"))
        }
    }
}
