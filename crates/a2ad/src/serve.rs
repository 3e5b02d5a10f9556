//! The server as a process: an address, signals, and the order in which things stop.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use engine::{Agents, Limits};
use futures_util::future::{FusedFuture, FutureExt as _};
use inbound::{Options, listen};
use store::InstanceState;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{banner::Banner, port_holder, server::Server};

/// How long a graceful shutdown takes at most: the drain delay, then what is left of it for runs to finish.
pub(crate) const GRACE: Duration = Duration::from_secs(25);

/// How long responses may take to be sent when the store has failed or a second signal arrived.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

/// Further signals within this time are duplicates: a wrapper may forward a signal that the process group got already.
const SIGNAL_DEBOUNCE: Duration = Duration::from_millis(250);

/// What a server needs to know.
pub(crate) struct Settings {
    /// The configuration file it comes from; none for the demo.
    pub(crate) config: Option<PathBuf>,
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// Where it keeps its tasks.
    pub(crate) store: PathBuf,
    /// What it runs.
    pub(crate) agents: Agents,
    /// How much may run at a time, and how long.
    pub(crate) limits: Limits,
    /// How it is served.
    pub(crate) server_options: Options,
    /// For how long it is not ready before it shuts down; `None` depends on where it listens.
    pub(crate) drain_delay: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            config: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 4242)),
            store: "a2ad.db".into(),
            agents: Agents::new(outbound::agents::demo()),
            limits: Limits::default(),
            server_options: Options::new(outbound::agents::DEMO[0]),
            drain_delay: None,
        }
    }
}

/// Why a server does not run, in one sentence for its operator.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nobody may be let in from outside yet.
    #[error("listening on {0} would let anybody in: no credentials can be checked yet; use a loopback address such as 127.0.0.1:{port}", port = .0.port())]
    NotLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {reason}{}; choose another address with --listen", held_by(holder.as_deref()))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        reason: std::io::Error,
        /// The process that has the address, as far as it is known.
        holder: Option<String>,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] store::OpenError),
    /// The store has stopped writing.
    #[error(
        "the store cannot write any more: {0}; every acknowledged task is safe, check the disk and start again"
    )]
    StoreFailed(String),
    /// No folder can be had for a store without a path.
    #[error("no temporary folder for the store: {0}; name a file with Builder::store")]
    TemporaryStore(std::io::Error),
    /// There is nothing to serve.
    #[error("there is no agent to serve; add one with Builder::agent")]
    NoAgent,
    /// An agent cannot be served under its id.
    #[error("the agent {id:?} {problem}")]
    Agent {
        /// The id.
        id: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is nobody to do the work.
    #[error("a server is built inside a tokio runtime, which does its work")]
    NoRuntime,
}

fn held_by(holder: Option<&str>) -> String {
    holder.map(|holder| format!(", held by {holder}")).unwrap_or_default()
}

/// Serves what is configured until the process is told to stop, then stops in good order.
pub(crate) async fn serve(settings: Settings) -> Result<(), ServeError> {
    let Settings { config, listen: address, store, agents, limits, server_options, drain_delay } = settings;
    // The port first: a second start by mistake fails before it touches the store.
    let listener = bind(address).await?;
    let signals = Signals::new();
    let server = Server::open(&store, agents.clone(), limits, server_options.clone())?;
    let address = listener.local_addr().unwrap_or(address);
    let config = config.as_deref();
    Banner { address, agents: &agents, server_options: &server_options, store: &store, config }.show();
    let drain_delay = drain_delay.unwrap_or_else(|| default_drain_delay(address));
    until_stopped(server, listener, signals, drain_delay).await
}

/// Takes the address, if callers may be let in there.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(reason) => {
            let taken = reason.kind() == std::io::ErrorKind::AddrInUse;
            let holder = if taken { port_holder::describe(address).await } else { None };
            Err(ServeError::Listen { address, reason, holder })
        }
    }
}

/// Load balancers need a moment to see that a server is not ready; on loopback there are none.
pub(crate) fn default_drain_delay(address: SocketAddr) -> Duration {
    if address.ip().is_loopback() { Duration::ZERO } else { Duration::from_secs(5) }
}

/// Serves until a signal asks it to stop, then shuts down gracefully; a second signal forces it.
pub(crate) async fn until_stopped(
    server: Server,
    listener: TcpListener,
    mut signals: Signals,
    drain_delay: Duration,
) -> Result<(), ServeError> {
    let shutdown = CancellationToken::new();
    server.record(InstanceState::Serving, listener.local_addr().ok());
    let serving = listen::serve(listener, server.front(), listen::Caps::default(), shutdown.clone());
    let mut serving = std::pin::pin!(serving.fuse());
    let mut failed = tokio::select! {
        () = &mut serving => None,
        () = signals.next() => None,
        failure = server.failed() => Some(failure),
    };
    server.withdraw();
    if failed.is_none() {
        failed = stop(&server, &mut serving, &shutdown, drain_delay).await;
    }
    shutdown.cancel();
    if failed.is_some() {
        // Whoever waits for a commit has been told that there is none; give those answers a moment to leave.
        let _ = tokio::time::timeout(LAST_RESPONSES, ended(&mut serving)).await;
    }
    failed.map_or(Ok(()), Err)
}

/// Shuts down: not ready for the drain delay, then no new work, then the end of runs, streams and connections. Requests
/// and readiness checks are answered until the runs have ended. Returns why the store failed meanwhile, if it did.
async fn stop(
    server: &Server,
    serving: &mut (impl FusedFuture<Output = ()> + Unpin),
    shutdown: &CancellationToken,
    drain_delay: Duration,
) -> Option<ServeError> {
    let gracefully = async { tokio::join!(drain(server, shutdown, drain_delay), ended(serving)) };
    tokio::select! {
        _ = gracefully => {}
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
    report_end(server).await;
    None
}

async fn drain(server: &Server, shutdown: &CancellationToken, drain_delay: Duration) {
    let grace = GRACE.saturating_sub(drain_delay);
    if !drain_delay.is_zero() {
        tracing::info!(
            "shutting down: not ready, new work is accepted for {} s more; a second signal or Ctrl-C stops at once",
            drain_delay.as_secs_f64()
        );
        tokio::time::sleep(drain_delay).await;
    }
    tracing::info!(
        "shutting down: no new work is accepted; running tasks have up to {} s to finish; a second signal or Ctrl-C \
         stops at once",
        grace.as_secs_f64()
    );
    server.drain(grace).await;
    shutdown.cancel();
}

/// Logs what the shutdown leaves to the next start.
async fn report_end(server: &Server) {
    match server.count_unfinished().await {
        Some(0) => tracing::info!("stopped; no task is left"),
        Some(1) => tracing::info!("stopped; 1 task is left and continues at the next start"),
        Some(tasks) => tracing::info!("stopped; {tasks} tasks are left and continue at the next start"),
        None => tracing::info!("stopped"),
    }
}

/// Resolves when another stop signal arrives that is not a duplicate of the first.
async fn second_signal() {
    tokio::time::sleep(SIGNAL_DEBOUNCE).await;
    // Made now, these receive nothing of what came before.
    Signals::new().next().await;
}

/// Resolves when it is over, also if it was over before.
async fn ended(serving: &mut (impl FusedFuture<Output = ()> + Unpin)) {
    if !serving.is_terminated() {
        serving.await;
    }
}

/// SIGTERM and SIGINT, which ask the process to stop; from the moment this is made, neither kills it.
pub(crate) struct Signals(Option<[Signal; 2]>);

impl Signals {
    pub(crate) fn new() -> Self {
        let heard = signal(SignalKind::terminate())
            .and_then(|terminate| Ok([terminate, signal(SignalKind::interrupt())?]));
        if let Err(error) = &heard {
            tracing::warn!(%error, "SIGTERM and SIGINT cannot be heard");
        }
        Self(heard.ok())
    }

    /// Resolves when either is heard.
    async fn next(&mut self) {
        match &mut self.0 {
            Some([terminate, interrupt]) => tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            },
            None => std::future::pending().await,
        }
    }
}
