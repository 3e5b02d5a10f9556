//! Readiness of the process, for `/readyz` and for gRPC health.

use std::sync::Arc;

use axum::response::Response;
use engine::Engine;
use http::StatusCode;
use tokio::sync::watch;

use crate::response::respond;

/// Whether this process accepts new work: not while it drains or cannot write. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ready(Arc<watch::Sender<Phase>>);

/// The phases of readiness, in the only order in which they follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Accepts work.
    Ready,
    /// Accepts no work, but still serves requests.
    NotReady,
    /// Connections must end.
    Closing,
}

impl Default for Ready {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Ready)))
    }
}

impl Ready {
    /// Reports "not ready" from now on.
    pub fn set_not_ready(&self) {
        self.advance(Phase::NotReady);
    }

    /// Reports "not ready" from now on, and ends the streams that only watch the readiness.
    pub fn close(&self) {
        self.advance(Phase::Closing);
    }

    pub(crate) fn is_ready(&self) -> bool {
        *self.0.borrow() == Phase::Ready
    }

    /// Follows the phases, beginning with the current one.
    pub(crate) fn watch(&self) -> watch::Receiver<Phase> {
        self.0.subscribe()
    }

    /// Resolves in the phase `Closing`.
    pub(crate) async fn closing(&self) {
        // The sender lives as long as `self`, so the wait ends only with the phase.
        let _ = self.watch().wait_for(|phase| *phase == Phase::Closing).await;
    }

    fn advance(&self, next: Phase) {
        self.0.send_if_modified(|phase| {
            let later = *phase < next;
            *phase = (*phase).max(next);
            later
        });
    }
}

/// The response of `/healthz`: the process serves requests.
pub(crate) fn liveness() -> Response {
    respond::json(&br#"{"status":"ok"}"#[..])
}

/// The response of `/readyz`. A server that refuses messages because of little disk space is ready: it is the only one
/// that can serve reads and cancellations of its tasks, and no other would have more space for it. The response says so.
pub(crate) fn readiness(ready: &Ready, engine: &Engine) -> Response {
    if ready.is_ready() && engine.is_low_on_space() {
        return respond::json(&br#"{"status":"ready","messages":"refused: little disk space is left"}"#[..]);
    }
    if ready.is_ready() {
        return respond::json(&br#"{"status":"ready"}"#[..]);
    }
    let mut response = respond::json(&br#"{"status":"not ready"}"#[..]);
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}
