//! Our own client on its way from a card to the agent.

use std::sync::{Arc, Mutex, PoisonError};

use axum::{Router, extract::State, http::Request, response::IntoResponse};
use client::{Options, find_card};

use crate::selftest::{Checked, fixture::Fixture, stage::Stage, wrong};

/// What a host was asked, such as `GET /.well-known/agent-card.json`.
type Asked = Arc<Mutex<Vec<String>>>;

/// A host has a card whose endpoint is another server's. Whoever reads it calls that one, and asks the host for nothing but
/// its card.
pub(super) async fn followed(at: &Fixture) -> Checked {
    let door = at.agent("pinkfish", "echo")?;
    let endpoint = format!("http://{}{}", door.server.host, door.path);
    let card = format!(
        r#"{{"protocolVersion":"0.3.0","name":"Elsewhere","description":"Lives somewhere else","url":"{endpoint}",
        "preferredTransport":"JSONRPC","version":"1","capabilities":{{}},"defaultInputModes":["text/plain"],
        "defaultOutputModes":["text/plain"],"skills":[]}}"#
    );
    let asked = Asked::default();
    let host = Stage::open(Router::new().fallback(answer).with_state((card, Arc::clone(&asked)))).await?;

    let found = find_card(&host.url(), &Options::default()).await.map_err(failed)?;
    let client = found.client(Options::default()).map_err(failed)?;
    if client.endpoint() != endpoint {
        return Err(wrong(endpoint, client.endpoint()));
    }
    let said = client::call_agent(&host.url(), "hello").await.map_err(failed)?;
    if said != "hello" {
        return Err(wrong("hello", said));
    }
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    match asked.iter().find(|line| *line != CARD) {
        None => Ok(()),
        Some(guess) => Err(wrong(format!("nothing but {CARD}"), guess)),
    }
}

const CARD: &str = "GET /.well-known/agent-card.json";

async fn answer<B>(State((card, asked)): State<(String, Asked)>, request: Request<B>) -> impl IntoResponse {
    let line = format!("{} {}", request.method(), request.uri().path());
    let is_card = line == CARD;
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    if is_card { Ok(card) } else { Err(axum::http::StatusCode::NOT_FOUND) }
}

fn failed(error: client::Error) -> crate::selftest::Trouble {
    wrong("an agent that our client reaches", error)
}
