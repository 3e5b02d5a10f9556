//! Executes a checked operation: through the engine, except for the extended card, which depends on the address of the
//! request.

use std::sync::Arc;

use engine::{CallResponse, Reservation};
use http::request::Parts;
use protocol::{Dialect, Error, Operation, Reply};

use crate::{
    respond, routes,
    server_state::{Endpoint, ServerState},
};

/// Executes an operation that [`admit`](crate::admit) has checked. Returns the answer, or the error for the caller.
/// Rare cases are boxed, so that the future of a send stays small.
pub(crate) async fn perform(
    server_state: &ServerState,
    endpoint: &Endpoint<'_>,
    dialect: Dialect,
    head: &Parts,
    operation: Operation,
    request_id: u64,
    memory: &Arc<Reservation>,
) -> Result<CallResponse, Error> {
    if let Operation::GetExtendedCard(_) = operation {
        let card = routes::card_builder(server_state, endpoint, &head.uri, &head.headers, &head.extensions)?;
        return Ok(CallResponse::Reply(Reply::Card(Box::new(card.extended()))));
    }
    let call = endpoint.call(dialect, &head.headers, memory)?;
    server_state
        .engine
        .call(call, operation)
        .await
        .map_err(|error| respond::to_caller_error(error, request_id))
}
