//! `/console/api/counts`: how many tasks there are, how much work, and how many streams.

use axum::response::Response;
use http::StatusCode;
use protocol::Error;

use super::{query_parameters, respond, task_document};
use crate::{exchange::Exchange, respond::to_caller_error};

/// `GET`
pub(super) async fn show(exchange: &Exchange) -> Result<Response, Error> {
    let [] = query_parameters(exchange, [])?;
    let counts = exchange.server.engine.operated_tasks().counts().await;
    let counts = counts.map_err(|error| to_caller_error(error, exchange.request_id))?;
    let streams = Some(exchange.server.streams.total());
    Ok(respond(StatusCode::OK, task_document::counts(&counts, streams, exchange.tenant, exchange.now())))
}
