//! The server's routes mounted into another HTTP app.

use axum::{Router, routing::get};

use super::echo_client;
use crate::{
    Card, Server,
    agents::Echo,
    selftest::{
        CheckError, CheckResult, fixture::Fixture, local_server::LocalServer, mismatch,
        test_client::text_part,
    },
};

/// An app with its own route: the server is mounted first as the fallback, then below a path.
pub(super) async fn mounted(_: &Fixture) -> CheckResult {
    let card = Card::new("echo").skill("echo", "Returns its input");
    let server = Server::builder().agent(card, Echo).build().map_err(failed)?;
    let app_with_own_route = || Router::new().route("/own", get(|| async { "the app's own page" }));
    works(app_with_own_route().fallback_service(server.router()), "").await?;
    works(app_with_own_route().nest("/agents", server.router()), "/agents").await
}

/// Checks the app's own route, and the card and a call below this path.
async fn works(app: Router, below: &str) -> CheckResult {
    let local_server = LocalServer::start(app).await?;
    let client = echo_client(&local_server.server, &format!("{below}/_agent-native/a2a"));
    let own_page = client.server.get("/own", &[]).await?;
    own_page.ensure(own_page.body() == b"the app's own page", "the app's own page")?;
    client.server.get(&format!("{below}/.well-known/agent-card.json"), &[]).await?.has_status(200)?;
    let response = client.message(&text_part("hello"), "").await?;
    response.has_state("completed")?;
    response.is("result.artifacts.0.parts.0.text", "hello")
}

fn failed(error: impl std::fmt::Display) -> CheckError {
    mismatch("an app that starts", error)
}
