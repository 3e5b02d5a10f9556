//! HTTP servers inside this process, for checks of our own client and of the library.

use axum::Router;
use inbound::listen;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{CheckError, http::Server, mismatch};

/// An app that is served on a free loopback port until this value is dropped.
pub(super) struct LocalServer {
    pub(super) server: Server,
    _serving: JoinSet<()>,
}

impl LocalServer {
    pub(super) async fn start(app: Router) -> Result<Self, CheckError> {
        let failed = |error: std::io::Error| mismatch("a free port", error);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let server = Server::at(listener.local_addr().map_err(failed)?.to_string());
        let mut serving = JoinSet::new();
        serving.spawn(listen::serve(listener, app, listen::Caps::default(), CancellationToken::new()));
        Ok(Self { server, _serving: serving })
    }

    /// The server's origin.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.server.host)
    }
}
