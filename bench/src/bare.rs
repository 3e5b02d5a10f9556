//! The bare server: axum, the body as a `serde_json::Value`, an echo, no storage.
//!
//! It is the upper bound of what this HTTP stack can serve and does only what no server can omit.

use std::convert::Infallible;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::echo::Echo;

/// The one route of the bare server.
pub fn router() -> Router {
    Router::new().route("/", post(handle))
}

/// Serves `router` until the process ends, with `TCP_NODELAY` on every connection.
pub async fn serve(listener: TcpListener, router: Router) -> Result<()> {
    let listener = listener.tap_io(|stream| {
        // A connection that is already closed fails here and again, visibly, on its first read.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await.context("the listener failed")
}

async fn handle(body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(echo) = Echo::of(&request) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    match request["method"].as_str() {
        Some("SendMessage") => {
            ([(header::CONTENT_TYPE, "application/json")], echo.response()).into_response()
        }
        Some("SendStreamingMessage") => stream(&echo),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn stream(echo: &Echo<'_>) -> Response {
    let events = echo.events().into_iter().enumerate().map(|(n, bytes)| {
        let data = String::from_utf8(bytes).expect("serde_json writes UTF-8");
        Ok::<_, Infallible>(sse::Event::default().id((n + 1).to_string()).data(data))
    });
    Sse::new(futures_util::stream::iter(events.collect::<Vec<_>>())).into_response()
}
