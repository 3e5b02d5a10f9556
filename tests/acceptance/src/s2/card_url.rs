//! The program's own client uses the endpoint that a card names.

use crate::{CheckResult, card_server::CardServer, fixture::Fixture, library, mismatch};

/// A host serves a card whose endpoint is on another server. The client must call that endpoint and request nothing but
/// the card from the host.
pub(super) async fn endpoint_used(at: &Fixture) -> CheckResult {
    let agent = at.agent("pinkfish", "echo");
    let endpoint = format!("http://{}{}", agent.server.host, agent.path);
    let card = format!(
        r#"{{"protocolVersion":"0.3.0","name":"Elsewhere","description":"Lives somewhere else","url":"{endpoint}",
        "preferredTransport":"JSONRPC","version":"1","capabilities":{{}},"defaultInputModes":["text/plain"],
        "defaultOutputModes":["text/plain"],"skills":[]}}"#
    );
    let host = CardServer::start("/.well-known/agent-card.json", card).await?;
    let selected = library::endpoint(&host.url()).await?;
    if selected != endpoint {
        return Err(mismatch(endpoint, selected));
    }
    let reply = library::call_agent(&host.url(), "hello").await?;
    if reply != "hello" {
        return Err(mismatch("hello", reply));
    }
    match host.requests().iter().find(|line| *line != CARD) {
        None => Ok(()),
        Some(guess) => Err(mismatch(format!("nothing but {CARD}"), guess)),
    }
}

const CARD: &str = "GET /.well-known/agent-card.json";
