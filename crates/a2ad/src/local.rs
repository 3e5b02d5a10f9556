//! A server for this process only: on a free loopback port, with a temporary store.

use std::time::Duration;

use engine::{Catalog, Limits};
use inbound::{ServerOptions, listen};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{ServeError, Server};

/// How long runs may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(6);

/// A running server of this process.
pub struct LocalServer {
    server: Server,
    url: String,
    shutdown: CancellationToken,
    serving: JoinSet<()>,
    _store: TempDir,
}

impl LocalServer {
    /// Serves these agents.
    pub async fn start(catalog: Catalog, limits: Limits) -> Result<Self, ServeError> {
        let store = tempfile::tempdir().map_err(ServeError::TemporaryStore)?;
        let server = Server::open(&store.path().join("a2ad.db"), catalog, limits, ServerOptions::default())?;
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(ServeError::Address)?;
        let url = format!("http://{}", listener.local_addr().map_err(ServeError::Address)?);
        let (shutdown, mut serving) = (CancellationToken::new(), JoinSet::new());
        serving.spawn(listen::serve(listener, server.service(), listen::Caps::default(), shutdown.clone()));
        Ok(Self { server, url, shutdown, serving, _store: store })
    }

    /// The URL of one agent.
    pub fn agent_url(&self, agent: &str) -> String {
        format!("{}/a2a/{agent}", self.url)
    }

    /// Ends runs and connections.
    pub async fn stop(mut self) {
        self.server.drain(STOP_LIMIT).await;
        self.shutdown.cancel();
        while self.serving.join_next().await.is_some() {}
    }
}
