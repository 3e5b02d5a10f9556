//! The server, wired: store, engine, doors, and the order in which they stop.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use engine::{Agents, Clock, Engine, Feed, Limits};
use inbound::{Options, Ready, listen};
use store::Sqlite;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long runs may go on after the process is told to stop.
const GRACE: Duration = Duration::from_secs(25);

/// How long answers may take to leave when the store has failed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a server needs to know.
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where it keeps its tasks.
    pub store: PathBuf,
    /// What it runs.
    pub agents: Agents,
    /// How much may run at a time, and how long.
    pub limits: Limits,
    /// How it is served.
    pub doors: Options,
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
}

/// Serves until the process is told to stop, then stops in good order.
pub async fn serve(settings: Settings) -> Result<(), ServeError> {
    let Settings { listen: address, store: path, agents, limits, doors } = settings;
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    // The port first: a second start by mistake fails before it touches the store.
    let listener =
        TcpListener::bind(address).await.map_err(|reason| ServeError::Listen { address, reason })?;
    let (feed, clock) = (Feed::default(), Clock::system());
    let store = Sqlite::open(&store::Options::at(&path), feed.clone(), &clock)?;
    let engine = Engine::start(Arc::new(store), feed, agents, clock, limits);
    let ready = Ready::default();
    let router = inbound::router(engine.clone(), doors, ready.clone());

    let bound = listener.local_addr().unwrap_or(address);
    let names: Vec<&str> = engine.agents().iter().map(|hosted| hosted.profile().id.as_str()).collect();
    tracing::info!(url = %format!("http://{bound}"), agents = names.join(", "), store = %path.display(), "a2ad serves");

    let drain = CancellationToken::new();
    let mut serving = std::pin::pin!(listen::serve(listener, router, listen::Caps::default(), drain.clone()));
    let not_ready = async {
        let finding = engine.damaged().await;
        ready.withdraw();
        tracing::error!(finding, "not ready: the store is damaged");
        std::future::pending::<()>().await;
    };
    let failed = tokio::select! {
        () = not_ready => None,
        () = &mut serving => None,
        () = told_to_stop() => None,
        reason = engine.failed() => Some(reason),
    };
    ready.withdraw();
    drain.cancel();
    if let Some(reason) = failed {
        // Whoever waits for a commit has been told that there is none; give those answers a moment to leave.
        let _ = tokio::time::timeout(LAST_WORDS, serving).await;
        return Err(ServeError::StoreFailed(reason));
    }
    tracing::info!("stopping: no new work, streams end, runs may finish");
    // Connections go on until the runs they wait for have ended or have been let go.
    tokio::join!(engine.drain(GRACE), serving);
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
