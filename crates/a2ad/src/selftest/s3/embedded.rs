//! The routes inside another program's HTTP app.

use axum::{Router, routing::get};

use super::elsewhere;
use crate::{
    Card, Server,
    agents::Echo,
    selftest::{Checked, Trouble, door::text_part, fixture::Fixture, stage::Stage, wrong},
};

/// An app with pages of its own: at first everything else is the server's, then only what is below a path.
pub(super) async fn mounted(_: &Fixture) -> Checked {
    let card = Card::new("echo").skill("echo", "Gives back what it is given");
    let server = Server::builder().agent(card, Echo).build().map_err(failed)?;
    let own = || Router::new().route("/own", get(|| async { "the app's own page" }));
    works(own().fallback_service(server.router()), "").await?;
    works(own().nest("/agents", server.router()), "/agents").await
}

/// Both are there: the app's own page, and below this path the card and the calls.
async fn works(app: Router, below: &str) -> Checked {
    let stage = Stage::open(app).await?;
    let door = elsewhere(&stage.server, &format!("{below}/_agent-native/a2a"));
    let own = door.server.get("/own", &[]).await?;
    own.must(own.body() == b"the app's own page", "the app's own page")?;
    door.server.get(&format!("{below}/.well-known/agent-card.json"), &[]).await?.has_status(200)?;
    let answer = door.message(&text_part("hello"), "").await?;
    answer.state("completed")?;
    answer.is("result.artifacts.0.parts.0.text", "hello")
}

fn failed(error: impl std::fmt::Display) -> Trouble {
    wrong("an app that starts", error)
}
