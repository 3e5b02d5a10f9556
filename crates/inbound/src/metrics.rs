//! `/metrics`: what the process has counted, in the text format of Prometheus.
//!
//! [`catalogue`] is the one table of metrics; `docs/metrics.md` is generated from it, and a test compares it with the page.
//! [`calls`] and [`connections`] count what happens here; the engine and the store have counters of their own
//! (`engine::metrics`). Labels have closed sets of values: neither ids nor agents nor texts of callers are labels, so the
//! page has a bounded size. A scrape reads atomics, takes the scheduler's lock once for a look at what waits
//! (`limits.queued` at most), and asks the system for the process and the disk.

pub(crate) mod calls;
mod catalogue;
pub(crate) mod connections;
mod exposition;
mod page;
mod process;

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, header};

use self::{calls::CallMetrics, connections::ConnectionMetrics, exposition::Format};
use crate::{bindings::operators, request::exchange::Exchange, server_state::ServerState};

/// What this crate counts.
#[derive(Debug, Default)]
pub(crate) struct ServerMetrics {
    pub(crate) calls: CallMetrics,
    pub(crate) connections: ConnectionMetrics,
}

/// Responds with the page.
pub(crate) async fn handle(exchange: Exchange) -> Response {
    let format = requested_format(&exchange.head.headers);
    let text = page::render(&exchange.server, format).await;
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    operators::without_caching(response)
}

/// The page, for an application that serves it itself.
pub(crate) async fn text(server: &ServerState) -> String {
    page::render(server, Format::Text).await
}

/// OpenMetrics for those who name it, such as Prometheus itself.
fn requested_format(headers: &HeaderMap) -> Format {
    let values = headers.get_all(header::ACCEPT).iter();
    let accepts = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default();
        value
            .split(',')
            .any(|range| range.split(';').next().unwrap_or_default().trim() == "application/openmetrics-text")
    };
    if values.into_iter().any(accepts) { Format::OpenMetrics } else { Format::Text }
}
