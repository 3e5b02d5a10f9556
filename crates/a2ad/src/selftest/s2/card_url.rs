//! Our own client uses the endpoint that a card names.

use std::sync::{Arc, Mutex, PoisonError};

use axum::{Router, extract::State, http::Request, response::IntoResponse};
use client::{ClientOptions, find_card};

use crate::selftest::{CheckResult, fixture::Fixture, local_server::LocalServer, mismatch};

/// The requests that a host received, such as `GET /.well-known/agent-card.json`.
type RequestLog = Arc<Mutex<Vec<String>>>;

/// A host serves a card whose endpoint is on another server. The client must call that endpoint and request nothing but
/// the card from the host.
pub(super) async fn endpoint_used(at: &Fixture) -> CheckResult {
    let agent = at.agent("pinkfish", "echo")?;
    let endpoint = format!("http://{}{}", agent.server.host, agent.path);
    let card = format!(
        r#"{{"protocolVersion":"0.3.0","name":"Elsewhere","description":"Lives somewhere else","url":"{endpoint}",
        "preferredTransport":"JSONRPC","version":"1","capabilities":{{}},"defaultInputModes":["text/plain"],
        "defaultOutputModes":["text/plain"],"skills":[]}}"#
    );
    let request_log = RequestLog::default();
    let host =
        LocalServer::start(Router::new().fallback(serve_card).with_state((card, Arc::clone(&request_log))))
            .await?;

    let found = find_card(&host.url(), &ClientOptions::default()).await.map_err(failed)?;
    let client = found.client(ClientOptions::default()).map_err(failed)?;
    if client.endpoint() != endpoint {
        return Err(mismatch(endpoint, client.endpoint()));
    }
    let reply = client::call_agent(&host.url(), "hello").await.map_err(failed)?;
    if reply != "hello" {
        return Err(mismatch("hello", reply));
    }
    let request_log = request_log.lock().unwrap_or_else(PoisonError::into_inner);
    match request_log.iter().find(|line| *line != CARD) {
        None => Ok(()),
        Some(guess) => Err(mismatch(format!("nothing but {CARD}"), guess)),
    }
}

const CARD: &str = "GET /.well-known/agent-card.json";

async fn serve_card<B>(
    State((card, request_log)): State<(String, RequestLog)>,
    request: Request<B>,
) -> impl IntoResponse {
    let line = format!("{} {}", request.method(), request.uri().path());
    let is_card = line == CARD;
    request_log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    if is_card { Ok(card) } else { Err(axum::http::StatusCode::NOT_FOUND) }
}

fn failed(error: client::Error) -> crate::selftest::CheckError {
    mismatch("an agent that our client reaches", error)
}
