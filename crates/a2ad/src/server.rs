//! The server as a library: agents and doors, put together by a builder, mounted or served.
//!
//! A server that is mounted has no signals, no address and no say over the process: whoever mounts it drains it
//! with [`Server::drain`] and listens to [`Server::failed`]. Served by itself it does both.

mod card;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::{Extension, Router};
use engine::{Agent, Agents, Clock, Engine, Feed, Limits, RegisteredAgent};
use inbound::{AcceptedVersions, AgentSettings, CardShape, Front, Options, Profile, Ready};
use protocol::ErrorTable;
use store::{Instance, InstanceState, Sqlite};
use tempfile::TempDir;

use crate::{
    banner::Banner,
    serve::{self, ServeError},
};

pub use card::Card;

/// Agents that are being served. Cheap to clone; every clone is the same server.
#[derive(Clone)]
pub struct Server {
    engine: Engine,
    ready: Ready,
    front: Front,
    /// Describes this process to others that want the same store.
    instance: Instance,
    /// Where the store is when nobody said where; gone with the last who needs it.
    folder: Option<Arc<TempDir>>,
}

impl Server {
    /// A server without agents.
    pub fn builder() -> Builder {
        Builder {
            registered: Vec::new(),
            server_options: BTreeMap::new(),
            profiles: BTreeMap::new(),
            accepted_versions: AcceptedVersions::default(),
            errors: ErrorTable::default(),
            card_shape: CardShape::default(),
            default_agent: None,
            store: None,
            limits: Limits::default(),
            max_body_bytes: None,
            public_url: None,
        }
    }

    /// Everything the server answers. Paths that the app keeps to itself stay the app's when this is its fallback:
    ///
    /// ```no_run
    /// # use axum::{Router, routing::get};
    /// # fn mount(server: &a2ad::Server) -> Router {
    /// Router::new().route("/hello", get(|| async { "hello" })).fallback_service(server.router())
    /// # }
    /// ```
    ///
    /// It can be nested below a path too; then [`Builder::public_url`] must end with that path, so that cards point to
    /// where calls go, and the card of the host itself stays the app's business.
    pub fn router(&self) -> Router {
        let router = self.front.router();
        match &self.folder {
            Some(folder) => router.layer(Extension(Arc::clone(folder))),
            None => router,
        }
    }

    /// Shuts down gracefully: new messages are refused as unavailable, runs may finish within `grace`, then streams end.
    /// Reads and readiness checks are answered meanwhile. What is left is resumed when the store is opened again.
    pub async fn drain(&self, grace: Duration) {
        self.withdraw();
        self.engine.drain(grace).await;
        self.ready.leave();
    }

    /// Resolves when the store can no longer write; every call is refused from then on, and only a new process helps.
    /// While it waits, `/readyz` says no as soon as the store is found to be damaged.
    pub async fn failed(&self) -> ServeError {
        let not_ready = async {
            let finding = self.engine.damaged().await;
            self.ready.withdraw();
            tracing::error!(finding, "not ready: the store is damaged");
            std::future::pending().await
        };
        tokio::select! {
            never = not_ready => never,
            reason = self.engine.failed() => ServeError::StoreFailed(reason),
        }
    }

    /// Opens a store and starts what belongs to it.
    pub(crate) fn open(
        path: &Path,
        agents: Agents,
        limits: Limits,
        server_options: Options,
    ) -> Result<Self, ServeError> {
        let (feed, clock) = (Feed::default(), Clock::system());
        let store = Sqlite::open(&store::Options::at(path), feed.clone(), &clock)?;
        let instance = store.instance();
        instance.record(InstanceState::Serving, None);
        let engine = Engine::start(Arc::new(store), feed, agents, clock, limits);
        let ready = Ready::default();
        let front = Front::new(engine.clone(), server_options, ready.clone());
        Ok(Self { engine, ready, front, instance, folder: None })
    }

    /// The same as [`router`](Self::router), for connections of our own.
    pub(crate) fn front(&self) -> Front {
        self.front.clone()
    }

    /// Records what this process is doing, for others that want the same store.
    pub(crate) fn record(&self, state: InstanceState, address: Option<SocketAddr>) {
        self.instance.record(state, address.map(|address| address.to_string()).as_deref());
    }

    /// How many tasks have work left; `None` where the store cannot be read any more.
    pub(crate) async fn count_unfinished(&self) -> Option<usize> {
        self.engine.count_unfinished().await.ok()
    }

    /// Says that no new work is wanted.
    pub(crate) fn withdraw(&self) {
        self.record(InstanceState::Draining, None);
        self.ready.withdraw();
    }
}

/// Puts a [`Server`] together.
#[must_use = "a builder does nothing until it is built or served"]
pub struct Builder {
    registered: Vec<RegisteredAgent>,
    /// As the cards of the agents say.
    server_options: BTreeMap<String, AgentSettings>,
    profiles: BTreeMap<String, Profile>,
    accepted_versions: AcceptedVersions,
    errors: ErrorTable,
    card_shape: CardShape,
    default_agent: Option<String>,
    store: Option<PathBuf>,
    limits: Limits,
    max_body_bytes: Option<usize>,
    public_url: Option<String>,
}

impl Builder {
    /// Adds an agent: at `/a2a/{id}`, and at `/` too if it is the first. A bare id makes a card of that name.
    ///
    /// ```
    /// # use a2ad::{Card, Server, agents::Echo};
    /// Server::builder()
    ///     .agent("echo", Echo)
    ///     .agent(Card::new("parrot").name("Parrot").description("Repeats it").skill("repeat", "Repeats a text"), Echo);
    /// ```
    pub fn agent(mut self, card: impl Into<Card>, agent: impl Agent) -> Self {
        let Card { profile, settings, dedupe, retention } = card.into();
        self.server_options.insert(profile.id.clone(), settings);
        let registered =
            RegisteredAgent::new(profile, Arc::new(agent)).with_dedupe(dedupe).with_retention(retention);
        self.registered.push(registered);
        self
    }

    /// The agent at `/` and at the card of the host; the first one unless this says otherwise.
    pub fn default_agent(mut self, id: impl Into<String>) -> Self {
        self.default_agent = Some(id.into());
        self
    }

    /// The database file, made when absent. Without one, tasks live in a temporary folder and go with the server.
    pub fn store(mut self, path: impl Into<PathBuf>) -> Self {
        self.store = Some(path.into());
        self
    }

    /// The house style of an agent at its own path and on its card.
    pub fn profile(mut self, agent: impl Into<String>, profile: Profile) -> Self {
        self.profiles.insert(agent.into(), profile);
        self
    }

    /// Which generations are spoken, and whether a method of 1.0 has to name its version; all of them, and no.
    pub fn accepted_versions(mut self, accepted_versions: AcceptedVersions) -> Self {
        self.accepted_versions = accepted_versions;
        self
    }

    /// Whose table of statuses REST and gRPC answer errors by; that of A2A 1.0.1 unless this says otherwise.
    pub fn errors(mut self, errors: ErrorTable) -> Self {
        self.errors = errors;
        self
    }

    /// What is at `agent-card.json` where the reader does not name a version; one card for all of them unless this
    /// says otherwise.
    pub fn card_shape(mut self, shape: CardShape) -> Self {
        self.card_shape = shape;
        self
    }

    /// How much may run at a time, and how long.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The largest body that is read; 16 MiB unless this says otherwise.
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = Some(bytes);
        self
    }

    /// Scheme, host and path under which clients reach the router, such as `https://example.com/agents`; without it,
    /// cards point to the host the client asked.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into().trim_end_matches('/').to_owned());
        self
    }

    /// The server, running. Has to be called inside a tokio runtime, whose tasks do the work.
    pub fn build(self) -> Result<Server, ServeError> {
        Ok(self.start()?.0)
    }

    /// Serves at this address until the process is told to stop, then stops in good order; told again, at once. Port 0
    /// is one that is free.
    ///
    /// It begins by saying what runs where and what to try: to a person as text on stderr, otherwise as one line of
    /// the log, if there is one ([`logging::start`](crate::logging::start)).
    ///
    /// # Errors
    ///
    /// See [`ServeError`]. No credential can be checked yet, so the address has to be a loopback one.
    pub async fn serve(self, address: SocketAddr) -> Result<(), ServeError> {
        let listener = serve::bind(address).await?;
        let signals = serve::Signals::new();
        let address = listener.local_addr().unwrap_or(address);
        let (server, Started { agents, server_options, store }) = self.start()?;
        Banner { address, agents: &agents, server_options: &server_options, store: &store, config: None }
            .show();
        serve::until_stopped(server, listener, signals, serve::default_drain_delay(address)).await
    }

    fn start(self) -> Result<(Server, Started), ServeError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(ServeError::NoRuntime);
        }
        let server_options = self.server_options()?;
        let (store, folder) = self.place()?;
        let agents = Agents::new(self.registered);
        let mut server = Server::open(&store, agents.clone(), self.limits, server_options.clone())?;
        // The folder goes when nobody can be answered any more.
        server.folder = folder.map(Arc::new);
        Ok((server, Started { agents, server_options, store }))
    }

    fn server_options(&self) -> Result<Options, ServeError> {
        let ids = || self.registered.iter().map(|registered| registered.info().id.as_str());
        for (place, id) in ids().enumerate() {
            check_id(id)?;
            if ids().take(place).any(|earlier| earlier == id) {
                return Err(ServeError::Agent { id: id.into(), problem: "is there twice" });
            }
        }
        for id in self.default_agent.iter().chain(self.profiles.keys()) {
            if !ids().any(|known| known == id) {
                return Err(ServeError::Agent { id: id.clone(), problem: "is not among the agents" });
            }
        }
        let first = ids().next().ok_or(ServeError::NoAgent)?;
        let mut server_options = Options::new(self.default_agent.as_deref().unwrap_or(first));
        server_options.agents = self.server_options.clone();
        for (id, profile) in &self.profiles {
            server_options.agents.entry(id.clone()).or_default().profile = profile.clone();
        }
        server_options.accepted_versions = self.accepted_versions;
        server_options.errors = self.errors;
        server_options.card.shape = self.card_shape;
        server_options.public_url = self.public_url.clone();
        server_options.max_body_bytes = self.max_body_bytes.unwrap_or(server_options.max_body_bytes);
        Ok(server_options)
    }

    /// Where the store is, and the folder that has to last as long as it.
    fn place(&self) -> Result<(PathBuf, Option<TempDir>), ServeError> {
        if let Some(path) = &self.store {
            return Ok((path.clone(), None));
        }
        let folder =
            tempfile::Builder::new().prefix("a2ad-").tempdir().map_err(ServeError::TemporaryStore)?;
        Ok((folder.path().join("a2ad.db"), Some(folder)))
    }
}

/// What a server was started with.
struct Started {
    agents: Agents,
    server_options: Options,
    /// The database file.
    store: PathBuf,
}

/// Ids stand in paths, so they are plain words, and none that means something else there.
fn check_id(id: &str) -> Result<(), ServeError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let problem = if id.is_empty() || id.len() > 64 || !id.bytes().all(plain) {
        "is not made of 1 to 64 letters, digits, '-', '_', '.' or '~'"
    } else if inbound::is_own_path(id) {
        "is a path of its own below /a2a"
    } else {
        return Ok(());
    };
    Err(ServeError::Agent { id: id.into(), problem })
}
