//! Small servers inside this process: for what our own client is to meet, and for what the library is to serve.

use axum::Router;
use inbound::listen;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{Trouble, http::Server, wrong};

/// An app that is served until this is dropped.
pub(super) struct Stage {
    pub(super) server: Server,
    _serving: JoinSet<()>,
}

impl Stage {
    /// Serves an app at a port of its own.
    pub(super) async fn open(app: Router) -> Result<Self, Trouble> {
        let failed = |error: std::io::Error| wrong("a port that can be had", error);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let server = Server::at(listener.local_addr().map_err(failed)?.to_string());
        let mut serving = JoinSet::new();
        serving.spawn(listen::serve(listener, app, listen::Caps::default(), CancellationToken::new()));
        Ok(Self { server, _serving: serving })
    }

    /// Its origin.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.server.host)
    }
}
