//! A server inside a test: on a free loopback port, with a temporary store, until it is dropped.
//!
//! ```
//! use a2ad::{Outcome, Result, Server, Turn, agent_fn, testing::TestServer};
//!
//! async fn shout(turn: Turn) -> Result<Outcome> {
//!     Ok(Outcome::artifact("shout", turn.text().to_uppercase()))
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<()> {
//! let server = TestServer::start(Server::builder().agent("shout", agent_fn(shout))).await?;
//! assert_eq!(server.call("hello").await?, "HELLO");
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use inbound::listen;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{Builder, Client, Result, Server, call_agent};

/// A server for one test. Dropping it stops it in the background; [`stop`](Self::stop) waits until it has stopped.
pub struct TestServer {
    server: Server,
    url: String,
    shutdown: CancellationToken,
    serving: JoinSet<()>,
}

impl TestServer {
    /// Starts the server that the builder describes. With [`Builder::store`], another server can be started on the same
    /// store after [`stop`](Self::stop); otherwise the store is temporary.
    pub async fn start(builder: Builder) -> Result<Self> {
        let server = builder.build()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (shutdown, mut serving) = (CancellationToken::new(), JoinSet::new());
        let (service, store) = (server.service(), server.owned());
        let serve = listen::serve(listener, service, listen::Caps::default(), shutdown.clone());
        serving.spawn(async move {
            serve.await;
            // Deleted only now: the server may be dropped before the last connection has ended.
            drop(store);
        });
        Ok(Self { server, url, shutdown, serving })
    }

    /// The URL of the server; its default agent is at `/`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of one agent.
    pub fn agent_url(&self, agent: &str) -> String {
        format!("{}/a2a/{agent}", self.url)
    }

    /// A client of the default agent.
    pub async fn client(&self) -> Result<Client> {
        Ok(Client::discover(&self.url).await?)
    }

    /// Sends a text to the default agent and returns the text of its result; see [`call_agent`].
    pub async fn call(&self, text: &str) -> Result<String> {
        Ok(call_agent(&self.url, text).await?)
    }

    /// Shuts the server down: runs may finish within `grace`, then connections are closed and the store is released.
    /// Unfinished tasks continue in the next server on the same store.
    pub async fn stop(self, grace: Duration) {
        let Self { server, shutdown, mut serving, .. } = self;
        server.drain(grace).await;
        shutdown.cancel();
        while serving.join_next().await.is_some() {}
        server.stop_backends().await;
    }
}
