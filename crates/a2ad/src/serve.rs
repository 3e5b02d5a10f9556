//! The server as a process: an address, signals, and the order in which things stop.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use engine::{Agents, Limits};
use inbound::{Options, listen};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{banner::Banner, logging, server::Server};

/// How long runs may go on after the process is told to stop.
const GRACE: Duration = Duration::from_secs(25);

/// How long answers may take to leave when the store has failed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a server needs to know.
pub(crate) struct Settings {
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// Where it keeps its tasks.
    pub(crate) store: PathBuf,
    /// What it runs.
    pub(crate) agents: Agents,
    /// How much may run at a time, and how long.
    pub(crate) limits: Limits,
    /// How it is served.
    pub(crate) doors: Options,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4242)),
            store: "a2ad.db".into(),
            agents: Agents::new(outbound::agents::demo()),
            limits: Limits::default(),
            doors: Options::new(outbound::agents::DEMO[0]),
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
    #[error("cannot listen on {address}: {reason}; choose another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        reason: std::io::Error,
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

/// Serves what is configured until the process is told to stop, then stops in good order.
pub(crate) async fn serve(settings: Settings) -> Result<(), ServeError> {
    let Settings { listen: address, store, agents, limits, doors } = settings;
    // The port first: a second start by mistake fails before it touches the store.
    let listener = bind(address).await?;
    let (default_agent, spoken) = (doors.default_agent.clone(), doors.spoken);
    let server = Server::open(&store, agents.clone(), limits, doors)?;
    let address = listener.local_addr().unwrap_or(address);
    Banner { address, agents: &agents, default_agent: &default_agent, spoken, store: &store }.show();
    until_stopped(server, listener).await
}

/// Takes the address, if callers may be let in there.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    TcpListener::bind(address).await.map_err(|reason| ServeError::Listen { address, reason })
}

/// Serves until the process is told to stop, then stops in good order.
pub(crate) async fn until_stopped(server: Server, listener: TcpListener) -> Result<(), ServeError> {
    let drain = CancellationToken::new();
    let serving = listen::serve(listener, server.front(), listen::Caps::default(), drain.clone());
    let mut serving = std::pin::pin!(serving);
    let failed = tokio::select! {
        () = &mut serving => None,
        () = told_to_stop() => None,
        failure = server.failed() => Some(failure),
    };
    server.withdraw();
    drain.cancel();
    if let Some(failure) = failed {
        // Whoever waits for a commit has been told that there is none; give those answers a moment to leave.
        let _ = tokio::time::timeout(LAST_WORDS, serving).await;
        logging::flush();
        return Err(failure);
    }
    tracing::info!("stopping: no new work, streams end, runs may finish");
    // Connections go on until the runs they wait for have ended or have been let go.
    tokio::join!(server.drain(GRACE), serving);
    logging::flush();
    Ok(())
}

/// Resolves on SIGTERM and on SIGINT.
async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => {
            tracing::warn!(%error, "SIGTERM cannot be heard");
            return std::future::pending().await;
        }
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
