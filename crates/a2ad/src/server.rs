//! The server as a library: a builder registers agents; the server is mounted into an app or serves by itself.
//!
//! A mounted server handles no signals and does not listen: its owner calls [`Server::drain`] and watches
//! [`Server::failed`]. A server started with [`Builder::serve`] does both itself.

mod agents;
mod api_keys;
mod auth;
#[cfg(feature = "backends")]
#[cfg_attr(
    not(all(feature = "mcp", feature = "openapi")),
    allow(unused, reason = "parts of it are for MCP servers and OpenAPI documents")
)]
pub(crate) mod backends;
mod card;
#[cfg(feature = "backends")]
mod following;
mod listen;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use axum::Extension;
use engine::{Catalog, Clock, CurrentCatalog, Engine, Feed};
use inbound::{ApiKeyOptions, HttpService, MountedHosts, Profile, Ready, ServerOptions};
use store::{Instance, InstanceState, Sqlite, SqliteOptions};
use tempfile::TempDir;
use tokio::net::ToSocketAddrs;

#[cfg(not(feature = "backends"))]
use agents::ServedAgent;
use agents::{BuilderAgent, Work};
#[cfg(feature = "backends")]
use backends::BuilderBackends;
#[cfg(feature = "backends")]
use following::{Assembly, CatalogUpdater};

use crate::{
    admin_token::AdminToken,
    audit,
    banner::Banner,
    listeners::{self, ListenAddress, Listeners},
    serve,
    store_keys::StoreKeys,
    watchdog::Watchdog,
};
#[cfg(feature = "backends")]
use crate::{assembly::Backends, push};

#[cfg(feature = "backends")]
pub use crate::push::PushOptions;
pub use agents::AgentWork;
pub use api_keys::ApiKeys;
pub use auth::Auth;
pub use axum::Router;
pub use card::Card;
#[cfg(feature = "backends")]
pub use engine::push::PushPolicy;
pub use engine::{
    AgentInfo, ApiKey, ApiKeyError, Dedupe, Limits, PrincipalCaps, RegisteredAgent, Retention, RunSettings,
    store::StoreError,
};
pub use inbound::{
    AcceptedVersions, AuthMethod, Caller, CardShape, ExtendedCard, Peer, Rate, RateLimits,
    tls::{TlsError, TlsFile, TlsFiles},
};
pub use listen::Listen;
pub use protocol::ErrorTable;
pub use store::{KeyFileError, OpenError};

pub use crate::serve::ServeError;

/// A running server. Cheap to clone; every clone is the same server.
#[derive(Clone)]
pub struct Server {
    engine: Engine,
    ready: Ready,
    service: HttpService,
    /// Describes this process to others that try to open the same store.
    instance: Instance,
    #[cfg(feature = "backends")]
    keys: StoreKeys,
    api_key_options: ApiKeyOptions,
    owned: Arc<ServerResources>,
}

/// What lives as long as a server and its routers.
#[derive(Default)]
pub(crate) struct ServerResources {
    /// The directory of a store without a path.
    _temp_dir: Option<TempDir>,
    #[cfg(feature = "backends")]
    following: Option<CatalogUpdater>,
}

impl Server {
    /// Starts without agents.
    pub fn builder() -> Builder {
        Builder {
            agents: Vec::new(),
            #[cfg(feature = "backends")]
            backends: BuilderBackends::default(),
            profiles: BTreeMap::new(),
            options: ServerOptions::default(),
            default_agent: None,
            store: None,
            limits: Limits::default(),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            auth: Auth::default(),
            #[cfg(feature = "backends")]
            push: PushOptions::default(),
            invalid_setting: None,
        }
    }

    /// A router for all of the server's paths. As a fallback it leaves the app's own routes to the app:
    ///
    /// ```no_run
    /// # use axum::{Router, routing::get};
    /// # fn mount(server: &a2ad::Server) -> Router {
    /// Router::new().route("/hello", get(|| async { "hello" })).fallback_service(server.router())
    /// # }
    /// ```
    ///
    /// It can also be nested below a path; then [`Builder::public_url`] must end with that path, so that cards
    /// contain the correct URLs, and the app has to serve the card at the root of the host itself.
    ///
    /// Requests may name the host of [`Builder::public_url`] and those of [`Builder::allowed_host`]; where neither is set,
    /// loopback names only, and the first request that is refused for it is logged. [`Builder::any_host`] accepts all.
    /// Web pages of other origins may read the cards only, unless [`Builder::cors_origin`] names them.
    pub fn router(&self) -> Router {
        self.service.router().layer(Extension(self.owned()))
    }

    /// The API keys: makes, lists and revokes them.
    pub fn api_keys(&self) -> ApiKeys {
        ApiKeys::new(self.engine.clone(), self.api_key_options.clone())
    }

    /// What the server has counted, in the text format of Prometheus; see docs/metrics.md. A server with a listener of its
    /// own also serves this at `/metrics`; an application that mounts the [`router`](Self::router) decides where and for
    /// whom.
    pub async fn metrics(&self) -> String {
        self.service.metrics().await
    }

    /// Shuts down gracefully: new messages are rejected as unavailable, runs may finish within `grace`, then
    /// streams end. In the last 5 seconds of `grace` ([`STOP_GRACE`](crate::agent::STOP_GRACE)) the agents that still run
    /// are asked to stop. Reads and readiness checks are answered meanwhile. Unfinished tasks are resumed when the store
    /// is opened again.
    pub async fn drain(&self, grace: Duration) {
        self.set_not_ready(grace);
        self.engine.drain(grace).await;
        self.ready.close();
    }

    /// Resolves when the store can no longer write; from then on every call is rejected until the process is
    /// restarted. While this is awaited, `/readyz` fails as soon as the store is found to be damaged.
    pub async fn failed(&self) -> ServeError {
        let not_ready = async {
            let finding = self.engine.damaged().await;
            self.ready.set_not_ready();
            tracing::error!(finding, "not ready: the store is damaged");
            std::future::pending().await
        };
        tokio::select! {
            never = not_ready => never,
            reason = self.engine.failed() => ServeError::StoreFailed(reason),
        }
    }

    /// Opens the store and starts the engine.
    pub(crate) fn open(
        path: &Path,
        catalog: Catalog,
        limits: Limits,
        server_options: ServerOptions,
    ) -> Result<Self, ServeError> {
        Ok(Self::start(OpenStore::open(path, &limits)?, catalog, limits, server_options))
    }

    /// Starts the engine on an open store.
    pub(crate) fn start(
        opened: OpenStore,
        catalog: Catalog,
        limits: Limits,
        mut server_options: ServerOptions,
    ) -> Self {
        let OpenStore { store, feed, clock, keys } = opened;
        server_options.published_keys = Some(keys.published());
        let instance = store.instance();
        instance.record(InstanceState::Serving, None);
        let engine = Engine::start(Arc::new(store), feed, catalog, clock, limits);
        let ready = Ready::default();
        let api_key_options = server_options.auth.api_keys.clone();
        let service = HttpService::new(engine.clone(), server_options, ready.clone());
        Self {
            engine,
            ready,
            service,
            instance,
            #[cfg(feature = "backends")]
            keys,
            api_key_options,
            owned: Arc::default(),
        }
    }

    /// Lets clients register webhooks, and starts to deliver notifications; not to these addresses, on which it listens.
    #[cfg(feature = "backends")]
    pub(crate) fn start_push(&self, options: PushOptions, addresses: &[ListenAddress]) {
        push::start(&self.engine, &self.keys, options, addresses);
    }

    pub(crate) fn clock(&self) -> Clock {
        self.engine.clock().clone()
    }

    /// The agents that are served.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.engine.catalog().load()
    }

    /// The catalog in use.
    pub(crate) fn current_catalog(&self) -> CurrentCatalog {
        self.engine.catalog().clone()
    }

    /// The same as [`router`](Self::router), for the program's own listener.
    pub(crate) fn service(&self) -> HttpService {
        self.service.clone()
    }

    /// What has to be kept as long as the server is served.
    pub(crate) fn owned(&self) -> Arc<ServerResources> {
        Arc::clone(&self.owned)
    }

    /// Ends the processes of the builder's backends.
    pub(crate) async fn stop_backends(&self) {
        #[cfg(feature = "backends")]
        if let Some(following) = &self.owned.following {
            following.stop().await;
        }
    }

    /// Records the state of this process for others that try to open the same store.
    pub(crate) fn record(&self, state: InstanceState, addresses: &[ListenAddress]) {
        self.instance.record(state, Some(&listeners::served_at(addresses)));
    }

    /// The number of tasks with unfinished work; `None` if the store cannot be read.
    pub(crate) async fn count_unfinished(&self) -> Option<usize> {
        self.engine.count_unfinished().await.ok()
    }

    /// Waits until everything queued is written. Returns the error if the store cannot write any more, such as after
    /// one of its files was removed.
    pub(crate) async fn flush(&self) -> Option<ServeError> {
        /// The reason is published directly after the rejection.
        const REASON_TIMEOUT: Duration = Duration::from_secs(1);
        let error = self.engine.flush().await.err()?;
        let reason = tokio::time::timeout(REASON_TIMEOUT, self.failed()).await;
        Some(reason.unwrap_or_else(|_| ServeError::StoreFailed(error.to_string())))
    }

    /// Makes `/readyz` fail and records that this process is draining and ends within this time.
    pub(crate) fn set_not_ready(&self, limit: Duration) {
        self.instance.record_draining(limit);
        self.ready.set_not_ready();
    }
}

/// A store that this process has open, and what an engine on it shares with it.
pub(crate) struct OpenStore {
    store: Sqlite,
    feed: Feed,
    clock: Clock,
    keys: StoreKeys,
}

impl OpenStore {
    pub(crate) fn open(path: &Path, limits: &Limits) -> Result<Self, ServeError> {
        let (feed, clock) = (Feed::default(), Clock::system());
        let options = SqliteOptions { min_free_disk: limits.min_free_disk, ..SqliteOptions::at(path) };
        let store = Sqlite::open(&options, feed.clone(), &clock)?;
        // Only now: another process that has the store open makes its keys.
        let keys = StoreKeys::of(path)?;
        Ok(Self { store, feed, clock, keys })
    }
}

/// Configures a [`Server`].
#[must_use = "a builder does nothing until it is built or served"]
pub struct Builder {
    agents: Vec<BuilderAgent>,
    #[cfg(feature = "backends")]
    backends: BuilderBackends,
    /// By agent id.
    profiles: BTreeMap<String, Profile>,
    /// Without what [`server_options`](Self::server_options) checks.
    options: ServerOptions,
    default_agent: Option<String>,
    store: Option<PathBuf>,
    limits: Limits,
    allowed_hosts: Vec<String>,
    cors_origins: Vec<String>,
    auth: Auth,
    #[cfg(feature = "backends")]
    push: PushOptions,
    /// The first execution setting of an agent that is invalid.
    invalid_setting: Option<ServeError>,
}

impl Builder {
    /// Adds an agent at `/a2a/{id}`; the first one is also at `/`. A string is the id of an otherwise empty card.
    ///
    /// ```
    /// # use a2ad::{Card, Server, agents::Echo};
    /// Server::builder()
    ///     .agent("echo", Echo)
    ///     .agent(Card::new("parrot").name("Parrot").description("Repeats it").skill("repeat", "Repeats a text"), Echo);
    /// ```
    ///
    /// The work is a Rust [`Agent`](crate::Agent), or the skills that `backend::skills` lists; those describe themselves.
    pub fn agent(mut self, card: impl Into<Card>, work: impl Into<AgentWork>) -> Self {
        let (card, AgentWork(work)) = (card.into(), work.into());
        let card = match work {
            Work::Agent(_) => card.completed(),
            #[cfg(feature = "backends")]
            Work::Skills(_) => card,
        };
        self.invalid_setting = self.invalid_setting.or_else(|| card.invalid_setting());
        self.agents.push(BuilderAgent { card, work });
        self
    }

    /// The agent at `/` and at the card of the host; default: the first agent.
    pub fn default_agent(mut self, id: impl Into<String>) -> Self {
        self.default_agent = Some(id.into());
        self
    }

    /// The database file, created if absent. Without one, tasks are kept in a temporary directory that is deleted
    /// with the server.
    pub fn store(mut self, path: impl Into<PathBuf>) -> Self {
        self.store = Some(path.into());
        self
    }

    /// The compatibility profile of an agent, at its own path and on its card.
    pub fn profile(mut self, agent: impl Into<String>, profile: Profile) -> Self {
        self.profiles.insert(agent.into(), profile);
        self
    }

    /// Which versions are accepted, and whether a 1.0 method must name its version. Default: all versions,
    /// and no.
    pub fn accepted_versions(mut self, accepted_versions: AcceptedVersions) -> Self {
        self.options.accepted_versions = accepted_versions;
        self
    }

    /// The table of HTTP and gRPC statuses for errors; default: that of A2A 1.0.1.
    pub fn errors(mut self, errors: ErrorTable) -> Self {
        self.options.errors = errors;
        self
    }

    /// The form of `agent-card.json` when the request names no version; default: one card for all versions.
    pub fn card_shape(mut self, shape: CardShape) -> Self {
        self.options.card.shape = shape;
        self
    }

    /// The limits of runs, tasks and memory.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The largest accepted request body; default: 16 MiB.
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.options.max_body_bytes = bytes;
        self
    }

    /// The base URL under which clients reach the router, such as `https://example.com/agents`. Default: the host
    /// of each request.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.options.public_url = Some(url.into().trim_end_matches('/').to_owned());
        self
    }

    /// A host that requests may name, with any port unless it has one, such as `agents.example.com`. Requests that name
    /// other hosts are rejected. A server that listens on a loopback address also accepts loopback names, and every
    /// server the host of [`public_url`](Self::public_url).
    pub fn allowed_host(mut self, host: impl Into<String>) -> Self {
        self.allowed_hosts.push(host.into());
        self
    }

    /// Accepts any host where the [router](Server::router) is mounted. Then a page whose name resolves to this machine (DNS
    /// rebinding) can call the agents and read their tasks, unless the application checks the host itself.
    pub fn any_host(mut self) -> Self {
        self.options.mounted_hosts = MountedHosts::Any;
        self
    }

    /// An origin whose web pages may call, such as `https://app.example.com`. Default: none but the server's own.
    pub fn cors_origin(mut self, origin: impl Into<String>) -> Self {
        self.cors_origins.push(origin.into());
        self
    }

    /// Which credentials are verified; default: API keys only. An agent accepts all of them, unless its
    /// [`Card::auth`] lists what it accepts.
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// How often callers may call; default: no limit. Beyond it, calls are refused with the status 429 and `Retry-After`.
    ///
    /// Callers without a credential are counted by their address, which an application tells with [`Peer`] or axum's
    /// `ConnectInfo`, and not at all without it.
    ///
    /// ```
    /// # use a2ad::server::{RateLimits, Server};
    /// let limits = RateLimits { per_key: "600/min".parse().ok(), ..RateLimits::default() };
    /// Server::builder().rate_limits(limits);
    /// ```
    pub fn rate_limits(mut self, limits: RateLimits) -> Self {
        self.options.rate_limits = limits;
        self
    }

    /// How push notifications are delivered, for agents whose [`Card::push_notifications`] is on. By default they are sent
    /// to public addresses over https only.
    #[cfg(feature = "backends")]
    pub fn push(mut self, options: PushOptions) -> Self {
        self.push = options;
        self
    }

    /// Starts the server. Must be called inside a tokio runtime, which runs its tasks.
    pub fn build(self) -> Result<Server, ServeError> {
        Ok(self.start(&[])?.0)
    }

    /// Serves at this address until a stop signal arrives, then shuts down gracefully; a second signal stops at
    /// once. Port 0 selects a free port.
    ///
    /// At the start it writes its address, agents and an example command: as text if stderr is a terminal,
    /// otherwise as one event of `tracing` if the process has a subscriber, and as text if it has none.
    ///
    /// On an address that others can reach, every agent needs [`Card::auth`] or the server [`Builder::auth`](Self::auth);
    /// an agent that everybody may call there needs `Card::anonymous(true)`. There is no TLS: use
    /// [`serve_on`](Self::serve_on), or put a proxy in front of it and set [`public_url`](Self::public_url).
    ///
    /// # Errors
    ///
    /// See [`ServeError`].
    pub async fn serve(self, address: impl ToSocketAddrs) -> crate::Result<()> {
        let address = ListenAddress::plain(serve::resolve(address).await?);
        Ok(self.serve_at(vec![address]).await?)
    }

    /// The same on several addresses, each with or without TLS.
    ///
    /// # Errors
    ///
    /// See [`ServeError`]. All addresses are bound before anything starts.
    pub async fn serve_on(self, addresses: impl IntoIterator<Item = Listen>) -> crate::Result<()> {
        let addresses = listen::resolve_all(addresses).await?;
        Ok(self.serve_at(addresses).await?)
    }

    async fn serve_at(mut self, addresses: Vec<ListenAddress>) -> Result<(), ServeError> {
        if listeners::caller_urls(&addresses).is_empty() {
            return Err(ServeError::NoAddress);
        }
        #[cfg(feature = "backends")]
        self.add_main_agent();
        self.auth.set_client_certificates(addresses.iter().any(ListenAddress::verifies_clients));
        let unprotected: Vec<&str> = self.unprotected().collect();
        let Listeners { addresses, sockets } = Listeners::bind(addresses, &unprotected).await?;
        let signals = serve::Signals::new();
        let watchdog = Watchdog::start();
        let (server, StartOptions { server_options, store, admin_token }) = self.start(&addresses)?;
        // Before the addresses are shown: commands that are run then look for them in the record.
        server.record(InstanceState::Serving, &addresses);
        let (addresses, catalog) = (addresses.as_slice(), server.catalog());
        Banner { addresses, catalog: &catalog, server_options: &server_options, store: &store, config: None }
            .show();
        if let Some(admin_token) = admin_token {
            admin_token.announce();
        }
        let audit = serve::ProcessAudit { audit: server_options.audit.clone(), clock: server.clock() };
        audit.record("server.start", None).await;
        let drain_delay = serve::default_drain_delay(addresses);
        let stop = serve::Stop { signals, watchdog: watchdog.as_ref(), drain_delay };
        let served = serve::serve_until_stopped(server.clone(), sockets, stop).await;
        server.stop_backends().await;
        audit.record("server.stop", served.as_ref().err().map(|_| "STORE_FAILED")).await;
        served
    }

    /// Starts the server; the addresses are those of its own listeners, on which operators have their API.
    fn start(mut self, addresses: &[ListenAddress]) -> Result<(Server, StartOptions), ServeError> {
        if let Some(error) = self.invalid_setting.take() {
            return Err(error);
        }
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(ServeError::NoRuntime);
        }
        #[cfg(feature = "backends")]
        {
            self.add_main_agent();
            self.backends.prepare(self.push.dialer.clone())?;
        }
        let default_agent = self.check_ids()?.to_owned();
        self.check_auth()?;
        let mut server_options = self.server_options(addresses)?;
        let (store, temp_dir) = self.store_path()?;
        let opened = OpenStore::open(&store, &self.limits)?;
        let has_operators = !addresses.is_empty() && temp_dir.is_none();
        let admin_token = has_operators.then(|| AdminToken::of(&store)).transpose()?;
        server_options.auth.admin_token = admin_token.as_ref().map(AdminToken::secret);
        if admin_token.is_some() {
            server_options.audit = Some(Arc::new(audit::open_beside(&store, opened.clock.clone())?));
        }
        let agents = self.served_agents()?;
        #[cfg(not(feature = "backends"))]
        let catalog = Catalog::new(default_agent, agents.iter().map(ServedAgent::registered));
        let limits = self.limits;
        #[cfg(feature = "backends")]
        let push = self.push.clone();
        #[cfg(feature = "backends")]
        let assembly = Assembly {
            default_agent,
            agents,
            skills: self.backends.all(),
            backends: Backends::start_in_background(self.backends.into_configs()),
            reports: Arc::default(),
        };
        #[cfg(feature = "backends")]
        let catalog = {
            server_options.reports = assembly.report();
            assembly.catalog()
        };
        let mut server = Server::start(opened, catalog, limits, server_options.clone());
        let owned = ServerResources {
            _temp_dir: temp_dir,
            #[cfg(feature = "backends")]
            following: Some(assembly.follow(server.current_catalog())),
        };
        #[cfg(feature = "backends")]
        server.start_push(push, addresses);
        server.owned = Arc::new(owned);
        Ok((server, StartOptions { server_options, store, admin_token }))
    }

    /// Checks the ids of the agents; returns that of the default agent.
    fn check_ids(&self) -> Result<&str, ServeError> {
        let ids = || self.agents.iter().map(|agent| agent.card.info.id.as_str());
        for (index, id) in ids().enumerate() {
            check_id(id)?;
            if ids().take(index).any(|earlier| earlier == id) {
                return Err(ServeError::Agent { id: id.into(), problem: "is used twice" });
            }
        }
        for id in self.default_agent.iter().chain(self.profiles.keys()) {
            if !ids().any(|known| known == id) {
                return Err(ServeError::Agent { id: id.clone(), problem: "is not registered" });
            }
        }
        let first = ids().next().ok_or(ServeError::NoAgent)?;
        Ok(self.default_agent.as_deref().unwrap_or(first))
    }

    /// Checks that credentials can be verified as the agents require.
    fn check_auth(&self) -> Result<(), ServeError> {
        if let Some((value, problem)) = self.auth.invalid() {
            return Err(ServeError::Setting { name: "auth", value, problem });
        }
        for BuilderAgent { card, .. } in &self.agents {
            let mut listed = card.auth.iter().flatten();
            if let Some(problem) = listed.find_map(|method| self.auth.missing(*method)) {
                return Err(ServeError::Agent { id: card.info.id.clone(), problem });
            }
        }
        Ok(())
    }

    /// The agents that everybody may call and of which nobody has set that.
    fn unprotected(&self) -> impl Iterator<Item = &str> {
        let is_open_by_default = self.auth.methods().is_empty();
        let cards = self.agents.iter().map(|agent| &agent.card);
        cards.filter(move |card| is_open_by_default && card.auth.is_none()).map(|card| card.info.id.as_str())
    }

    fn server_options(&self, addresses: &[ListenAddress]) -> Result<ServerOptions, ServeError> {
        let mut server_options = self.options.clone();
        if let Some(url) = server_options.public_url.iter().find(|url| !inbound::is_public_url(url)) {
            let problem = "is not a URL such as https://agents.example.com";
            return Err(ServeError::Setting { name: "public_url", value: url.clone(), problem });
        }
        let audiences = listeners::audiences(server_options.public_url.as_deref(), addresses);
        server_options.auth = self.auth.clone().into_options(audiences, addresses);
        server_options.allowed_hosts = parse_each("allowed_host", &self.allowed_hosts)?;
        server_options.cors_origins = parse_each("cors_origin", &self.cors_origins)?;
        Ok(server_options)
    }

    /// The path of the store, and its temporary directory if it has one.
    fn store_path(&self) -> Result<(PathBuf, Option<TempDir>), ServeError> {
        if let Some(path) = &self.store {
            return Ok((path.clone(), None));
        }
        let temp_dir =
            tempfile::Builder::new().prefix("a2ad-").tempdir().map_err(ServeError::TemporaryStore)?;
        Ok((temp_dir.path().join("a2ad.db"), Some(temp_dir)))
    }
}

/// What a server was started with.
struct StartOptions {
    server_options: ServerOptions,
    /// The database file.
    store: PathBuf,
    admin_token: Option<AdminToken>,
}

/// Parses the values of a method of the builder.
fn parse_each<T: FromStr<Err = &'static str>>(
    name: &'static str,
    values: &[String],
) -> Result<Vec<T>, ServeError> {
    let parse = |value: &String| {
        value.parse::<T>().map_err(|problem| ServeError::Setting { name, value: value.clone(), problem })
    };
    values.iter().map(parse).collect()
}

/// What is wrong with a text that is not a plain name.
const NOT_A_PLAIN_NAME: &str = "must be 1 to 64 letters, digits, '-', '_', '.' or '~'";

fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

/// Ids are used in URL paths, so their characters are restricted and the server's own path names are reserved.
fn check_id(id: &str) -> Result<(), ServeError> {
    let problem = if !is_plain_name(id) {
        NOT_A_PLAIN_NAME
    } else if inbound::is_reserved_agent_id(id) {
        "is reserved: the server uses this path below /a2a"
    } else {
        return Ok(());
    };
    Err(ServeError::Agent { id: id.into(), problem })
}
