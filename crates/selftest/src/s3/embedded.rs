//! The server's routes mounted into another HTTP app.

use super::echo_client;
use crate::{App, CheckResult, fixture::Fixture, json::ValueChecks as _, test_client::text_part};

/// An app with its own route: the server is mounted first as the fallback, then below a path.
pub(super) async fn mounted(at: &Fixture) -> CheckResult {
    works(at, App::Fallback, "").await?;
    works(at, App::Nested, App::NESTED_PATH).await
}

/// Checks the app's own route, and the card and a call below this path.
async fn works(at: &Fixture, app: App, below: &str) -> CheckResult {
    let app = at.serve(app).await?;
    let client = echo_client(&app.server, &format!("{below}/_agent-native/a2a"));
    let own_page = client.server.get(App::OWN_PAGE, &[]).await?;
    own_page.ensure(own_page.body() == App::OWN_PAGE_TEXT.as_bytes(), "the app's own page")?;
    client.server.get(&format!("{below}/.well-known/agent-card.json"), &[]).await?.has_status(200)?;
    let response = client.message(&text_part("hello"), "").await?;
    response.has_state("completed")?;
    response.is("result.artifacts.0.parts.0.text", "hello")
}
