//! `/console/api/counts`: how many tasks there are, how much work, and how many streams.

use axum::response::Response;
use http::StatusCode;
use protocol::Error;

use super::{failure, query_parameters, respond, task_document};
use crate::request::exchange::Exchange;

/// `GET`
pub(super) async fn show(exchange: &Exchange) -> Result<Response, Error> {
    let [] = query_parameters(exchange, [])?;
    let counts = exchange.server.engine.operator_tasks().counts().await;
    let counts = counts.map_err(|error| failure(exchange, error))?;
    let streams = exchange.server.engine.is_serving().then(|| exchange.server.streams.total());
    Ok(respond(
        StatusCode::OK,
        task_document::counts(&counts, streams, exchange.endpoint.tenant.id(), exchange.now()),
    ))
}
