//! The server as a process: listen address, signals, and the order of the shutdown.

use std::{
    collections::BTreeMap, convert::Infallible, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration,
};

use engine::{Catalog, Clock, CurrentCatalog, Limits, STOP_GRACE};
use futures_util::future::{FusedFuture, FutureExt as _};
use inbound::{Audit, AuditEntry, HttpService, RateLimits, ServerOptions, listen, tls::TlsError};
use protocol::model::Secret;
use store::InstanceState;
use tokio::{
    net::ToSocketAddrs,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "backends")]
use crate::push::PushOptions;
use crate::{
    admin_token::AdminToken,
    banner::Banner,
    listeners::{ListenAddress, Listeners, is_loopback},
    server::{OpenStore, Server},
    watchdog::Watchdog,
};

/// The time limit of a graceful shutdown: the drain delay, then the rest for runs to finish and to stop.
pub const SHUTDOWN_LIMIT: Duration = Duration::from_secs(25);

/// How long the last responses may take to be sent after that.
pub(crate) const CONNECTIONS_LIMIT: Duration = Duration::from_secs(3);

/// How long responses may take to be sent after the store has failed or a second signal arrived.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

/// Further signals within this time are duplicates: a wrapper may forward a signal that the process group got already.
const SIGNAL_DEBOUNCE: Duration = Duration::from_millis(250);

/// The settings of a server process.
pub struct Settings {
    /// The configuration file; `None` for the demo.
    pub config: Option<PathBuf>,
    /// The address in the URLs of cards, where nothing listens.
    pub listen: SocketAddr,
    /// The database file.
    pub store: PathBuf,
    /// The agents and their settings.
    pub catalog: Catalog,
    /// What replaces it while the server runs.
    pub reloads: Option<mpsc::Receiver<ReloadedSettings>>,
    /// The limits of runs, tasks and memory.
    pub limits: Limits,
    /// The options of paths and cards.
    pub server_options: ServerOptions,
    /// How long `/readyz` fails before the shutdown begins; `None`: 0 s on loopback, else 5 s.
    pub drain_delay: Option<Duration>,
    /// How push notifications are delivered.
    #[cfg(feature = "backends")]
    pub push: PushOptions,
    /// Logged once, after the startup message.
    pub warnings: Vec<String>,
}

/// What a reload of the configuration changes in a running server.
pub struct ReloadedSettings {
    /// The agents and their settings.
    pub catalog: Catalog,
    /// How often callers may call; `None`: as before.
    pub rate_limits: Option<RateLimits>,
    /// The secrets of organisations by domain; `None`: as before.
    pub org_secrets: Option<BTreeMap<String, Secret>>,
}

impl From<Catalog> for ReloadedSettings {
    fn from(catalog: Catalog) -> Self {
        Self { catalog, rate_limits: None, org_secrets: None }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 4242)),
            store: "a2ad.db".into(),
            catalog: Catalog::new(outbound::agents::demo_names()[0], outbound::agents::demo()),
            reloads: None,
            limits: Limits::default(),
            server_options: ServerOptions::default(),
            drain_delay: None,
            #[cfg(feature = "backends")]
            push: PushOptions::default(),
            warnings: Vec::new(),
        }
    }
}

/// Why a server does not start or had to stop. The message is for its operator.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Others can reach the address, and nobody has decided who may call these agents.
    #[error("listening on {address} would accept calls from anyone: nobody has decided who may call {agents}; set Card::auth or Builder::auth, or if everybody may, Card::anonymous(true); or use a loopback address such as 127.0.0.1:{port}", port = .address.port())]
    Unprotected {
        /// The requested address.
        address: SocketAddr,
        /// The ids of the agents.
        agents: String,
    },
    /// Others can reach the address of operators, and it has no TLS.
    #[error("listening on {address} for operators would send the admin token over the network without TLS; give the address TLS, or use a loopback address such as 127.0.0.1:{port}", port = .address.port())]
    PlainOperators {
        /// The requested address.
        address: SocketAddr,
    },
    /// The files of a listener's TLS cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// There is no address to listen on.
    #[error("there is no address for callers to serve on; add one to Builder::serve_on")]
    NoAddress,
    /// The address is not an address, or its host is unknown.
    #[error("the listen address cannot be resolved: {0}; expected host and port, such as 127.0.0.1:4242")]
    Address(std::io::Error),
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {reason}{}; choose another address (option --listen of the program a2ad)", held_by(holder.as_deref()))]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The error of the operating system.
        reason: std::io::Error,
        /// The process that holds the address, if it is known.
        holder: Option<String>,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] store::OpenError),
    /// The audit log cannot be opened.
    #[error("the audit log {} cannot be opened: {reason}; choose another file with audit.file, or \"off\"", path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: std::io::Error,
    },
    /// A key beside the store cannot be used.
    #[error(transparent)]
    KeyFile(#[from] store::KeyFileError),
    /// The key that seals secrets in the store is not one.
    #[error("{} is not a key that seals secrets of a store; restore the file from a backup, or remove it: then a new key is made, and webhooks that were registered before have to be registered again", path.display())]
    SealKey {
        /// The file.
        path: PathBuf,
    },
    /// The key that signs push notifications is not one.
    #[error("{}: {reason}; remove the file to get a new key when it is needed", path.display())]
    PushKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: outbound::webhooks::token_signer::InvalidKey,
    },
    /// The store can no longer write; the reason, what is known about the acknowledged tasks, and what to do.
    #[error("the store cannot write any more: {0}")]
    StoreFailed(String),
    /// No temporary directory could be created for a store without a path.
    #[error("cannot create a temporary directory for the store: {0}; set a file with Builder::store")]
    TemporaryStore(std::io::Error),
    /// No agent was registered.
    #[error("there is no agent to serve; add one with Builder::agent")]
    NoAgent,
    /// An agent id is invalid, duplicate, reserved or unknown.
    #[error("agent id {id:?} {problem}")]
    Agent {
        /// The rejected id.
        id: String,
        /// What is wrong with it, as the end of a sentence.
        problem: &'static str,
    },
    /// A value that was given to the builder is invalid.
    #[error("Builder::{name}: {value:?} {problem}")]
    Setting {
        /// The method of the builder.
        name: &'static str,
        /// The rejected value.
        value: String,
        /// What is wrong with it, as the end of a sentence.
        problem: &'static str,
    },
    /// A backend or a list of skills that was given to the builder is invalid.
    #[error("Builder::{method}: {name}: {problem}")]
    Backend {
        /// The method of the builder.
        method: &'static str,
        /// The name of the skill, the server, the document or the agent.
        name: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// An execution setting on a card is invalid.
    #[error("Card::{method} of the agent {agent:?}: {setting} {problem}")]
    RunSettings {
        /// Id of the agent.
        agent: String,
        /// The method of the card.
        method: &'static str,
        /// The skill or the setting.
        setting: String,
        /// What is wrong with it, as the end of a sentence.
        problem: &'static str,
    },
    /// The server was built outside a tokio runtime.
    #[error("no tokio runtime is running: build the server inside one")]
    NoRuntime,
}

fn held_by(holder: Option<&str>) -> String {
    holder.map(|holder| format!(", held by {holder}")).unwrap_or_default()
}

/// Serves the configured agents until a signal arrives, then shuts down gracefully. The process ends with exit code 75 if
/// that takes too long. The addresses are bound before: a
/// second instance started by mistake fails before it starts a backend or opens the store.
pub async fn serve(listeners: Listeners, settings: Settings) -> Result<(), ServeError> {
    let Settings {
        config,
        listen: _,
        store,
        catalog,
        reloads,
        limits,
        mut server_options,
        drain_delay,
        #[cfg(feature = "backends")]
        push,
        warnings,
    } = settings;
    let signals = Signals::new();
    let watchdog = Watchdog::start();
    let opened = OpenStore::open(&store, &limits)?;
    let admin_token = AdminToken::of(&store)?;
    server_options.auth.admin_token = Some(admin_token.secret());
    let server = Server::start(opened, catalog, limits, server_options.clone());
    #[cfg(feature = "backends")]
    server.start_push(push, &listeners.addresses);
    let (addresses, config) = (&listeners.addresses, config.as_deref());
    let audit = ProcessAudit { audit: server_options.audit.clone(), clock: server.clock() };
    audit.record("server.start", None).await;
    // Before the addresses are shown: commands that are run then look for them in the record.
    server.record(InstanceState::Serving, addresses);
    {
        // Kept no longer than this: the backends of a catalog stop when nobody uses it any more.
        let catalog = server.catalog();
        Banner { addresses, catalog: &catalog, server_options: &server_options, store: &store, config }
            .show();
        admin_token.announce();
    }
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let drain_delay = drain_delay.unwrap_or_else(|| default_drain_delay(addresses));
    let (current, service) = (server.current_catalog(), server.service());
    let stop = Stop { signals, watchdog: watchdog.as_ref(), drain_delay };
    let serving = serve_until_stopped(server, listeners.sockets, stop);
    let served = tokio::select! {
        served = serving => served,
        never = apply_reloads(&current, &service, reloads) => match never {},
    };
    if let Some(watchdog) = watchdog {
        // Also while the runtime ends, after this has returned.
        watchdog.keep();
    }
    audit.record("server.stop", served.as_ref().err().map(|_| "STORE_FAILED")).await;
    served
}

/// Records what the process itself does.
pub(crate) struct ProcessAudit {
    pub(crate) audit: Option<Arc<dyn Audit>>,
    pub(crate) clock: Clock,
}

impl ProcessAudit {
    pub(crate) async fn record(&self, action: &'static str, refused: Option<&str>) {
        if let Some(audit) = &self.audit {
            let entry = AuditEntry::done(self.clock.now(), "server", action);
            audit.record(AuditEntry { refused: refused.map(str::to_owned), ..entry }).await;
        }
    }
}

/// Puts what was reloaded into use.
pub(crate) async fn apply_reloads(
    current: &CurrentCatalog,
    service: &HttpService,
    reloads: Option<mpsc::Receiver<ReloadedSettings>>,
) -> Infallible {
    if let Some(mut reloads) = reloads {
        while let Some(ReloadedSettings { catalog, rate_limits, org_secrets }) = reloads.recv().await {
            if let Some(rate_limits) = rate_limits {
                service.set_rate_limits(rate_limits);
            }
            if let Some(org_secrets) = org_secrets {
                service.set_org_secrets(&org_secrets);
            }
            replace_catalog(current, catalog).await;
        }
    }
    std::future::pending().await
}

/// Puts other agents into use.
pub(crate) async fn replace_catalog(current: &CurrentCatalog, catalog: Catalog) {
    let replaced = current.swap(catalog);
    // Not on a thread that serves requests.
    let _ = tokio::task::spawn_blocking(move || drop(replaced)).await;
}

/// The first address that a text such as `localhost:4242` stands for.
pub(crate) async fn resolve(address: impl ToSocketAddrs) -> Result<SocketAddr, ServeError> {
    let mut found = tokio::net::lookup_host(address).await.map_err(ServeError::Address)?;
    found.next().ok_or_else(|| ServeError::Address(std::io::ErrorKind::NotFound.into()))
}

/// Load balancers need time to notice that a server is not ready; on loopback there are none.
pub(crate) fn default_drain_delay(addresses: &[ListenAddress]) -> Duration {
    if addresses.iter().all(|one| is_loopback(one.address)) { Duration::ZERO } else { Duration::from_secs(5) }
}

/// How a server is stopped.
pub(crate) struct Stop<'a> {
    pub(crate) signals: Signals,
    pub(crate) watchdog: Option<&'a Watchdog>,
    pub(crate) drain_delay: Duration,
}

/// Serves until a signal arrives, then shuts down gracefully; a second signal forces the exit.
pub(crate) async fn serve_until_stopped(
    server: Server,
    sockets: Vec<listen::Socket>,
    mut stop: Stop<'_>,
) -> Result<(), ServeError> {
    let shutdown = CancellationToken::new();
    let serving = listen::serve_all(sockets, server.service(), listen::Caps::default(), shutdown.clone());
    let mut serving = std::pin::pin!(serving.fuse());
    let mut failed = tokio::select! {
        () = &mut serving => None,
        () = stop.signals.next() => None,
        failure = server.failed() => Some(failure),
    };
    server.set_not_ready(SHUTDOWN_LIMIT + CONNECTIONS_LIMIT);
    if failed.is_none() {
        failed = shut_down(&server, &mut serving, &shutdown, &stop).await;
    }
    shutdown.cancel();
    if failed.is_some() {
        // Requests that waited for a commit now fail; allow time to send those responses.
        let _ = tokio::time::timeout(LAST_RESPONSES, ended(&mut serving)).await;
    }
    failed.map_or(Ok(()), Err)
}

/// The graceful shutdown: not ready during the drain delay, then no new work, then runs, streams and connections
/// end. Requests and readiness checks are answered until the runs have ended. Returns the error if the store fails
/// meanwhile.
async fn shut_down(
    server: &Server,
    serving: &mut (impl FusedFuture<Output = ()> + Unpin),
    shutdown: &CancellationToken,
    stop: &Stop<'_>,
) -> Option<ServeError> {
    let gracefully = async { tokio::join!(drain(server, shutdown, stop.drain_delay), ended(serving)) };
    tokio::select! {
        ended = tokio::time::timeout(SHUTDOWN_LIMIT + CONNECTIONS_LIMIT, gracefully) => {
            if ended.is_err() {
                tracing::warn!("stopping although runs or connections have not ended in time");
            }
        }
        failure = server.failed() => return Some(failure),
        () = second_signal() => {
            tracing::warn!("stopping at once: interrupted tasks continue at the next start");
            shutdown.cancel();
            let at_once = async { tokio::join!(server.drain(Duration::ZERO), ended(serving)) };
            tokio::select! {
                biased;
                failure = server.failed() => return Some(failure),
                _ = tokio::time::timeout(LAST_RESPONSES, at_once) => {}
            }
        }
    }
    if let Some(watchdog) = stop.watchdog {
        watchdog.drained();
    }
    let failed = server.flush().await;
    if failed.is_none() {
        report_end(server).await;
    }
    failed
}

async fn drain(server: &Server, shutdown: &CancellationToken, drain_delay: Duration) {
    let grace = SHUTDOWN_LIMIT.saturating_sub(drain_delay);
    if !drain_delay.is_zero() {
        tracing::info!(
            "shutting down: not ready, new work is accepted for {} s more; a second signal or Ctrl-C stops at once",
            drain_delay.as_secs_f64()
        );
        tokio::time::sleep(drain_delay).await;
    }
    tracing::info!(
        "shutting down: no new work is accepted; running tasks have up to {} s to finish and {} s more to stop; a second \
         signal or Ctrl-C stops at once",
        grace.saturating_sub(STOP_GRACE).as_secs_f64(),
        grace.min(STOP_GRACE).as_secs_f64()
    );
    server.drain(grace).await;
    shutdown.cancel();
}

/// Logs how many tasks the next start will continue.
async fn report_end(server: &Server) {
    match server.count_unfinished().await {
        Some(0) => tracing::info!("stopped; no task is left"),
        Some(1) => tracing::info!("stopped; 1 task is left and continues at the next start"),
        Some(tasks) => tracing::info!("stopped; {tasks} tasks are left and continue at the next start"),
        None => tracing::info!("stopped"),
    }
}

/// Resolves at the next stop signal that is not a duplicate of the first.
pub(crate) async fn second_signal() {
    tokio::time::sleep(SIGNAL_DEBOUNCE).await;
    // Created now, these do not receive earlier signals.
    Signals::new().next().await;
}

/// Waits for the server to end; returns at once if it has ended already.
async fn ended(serving: &mut (impl FusedFuture<Output = ()> + Unpin)) {
    if !serving.is_terminated() {
        serving.await;
    }
}

/// SIGTERM and SIGINT. From the moment this is created, neither kills the process.
pub(crate) struct Signals(Option<[Signal; 2]>);

impl Signals {
    pub(crate) fn new() -> Self {
        let streams = signal(SignalKind::terminate())
            .and_then(|terminate| Ok([terminate, signal(SignalKind::interrupt())?]));
        if let Err(error) = &streams {
            tracing::warn!(%error, "cannot handle SIGTERM and SIGINT");
        }
        Self(streams.ok())
    }

    /// Resolves when either arrives.
    pub(crate) async fn next(&mut self) {
        match &mut self.0 {
            Some([terminate, interrupt]) => tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            },
            None => std::future::pending().await,
        }
    }
}
