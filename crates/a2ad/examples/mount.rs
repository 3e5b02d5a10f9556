//! Agents mounted into an app that has its own routes: `cargo run -p a2ad --example mount`, then
//! `curl -s localhost:4244/hello` and `curl -s localhost:4244/a2a/echo -H 'Content-Type: text/plain' -d hello`

use std::time::Duration;

use a2ad::{Result, Server, agents::Echo};
use axum::{Router, routing::get};

/// The app: requests that match none of its routes go to the agents.
pub(crate) fn app(server: &Server) -> Router {
    Router::new().route("/hello", get(|| async { "hello from the app" })).fallback_service(server.router())
}

#[tokio::main]
#[allow(clippy::disallowed_methods, reason = "stands for a user's app, which is served with axum::serve")]
#[allow(clippy::print_stderr, reason = "a user's app prints its address")]
async fn main() -> Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4244".into());
    let server = Server::builder()
        .agent("echo", Echo)
        // The router serves loopback names; for others, name them with `public_url` or `allowed_host`.
        .build()?;
    let app = app(&server);
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let shutdown = async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
            error = server.failed() => eprintln!("{error}"),
        }
        server.drain(Duration::from_secs(10)).await;
    };
    axum::serve(listener, app).with_graceful_shutdown(shutdown).await?;
    Ok(())
}
