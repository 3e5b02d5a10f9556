//! Does what was asked and admitted: the engine's business, and the one answer that only a door can give, because it
//! depends on where the agent was asked.

use std::sync::Arc;

use engine::{Answer, Reservation};
use http::request::Parts;
use protocol::{Dialect, Error, Operation, Reply};

use crate::{
    respond, routes,
    server_state::{Endpoint, ServerState},
};

/// The answer to an operation that [`admit`](crate::admit) has let through, or what the caller is told instead. What
/// is not asked often is boxed, so that the future of a send stays small.
pub(crate) async fn perform(
    server_state: &ServerState,
    endpoint: &Endpoint<'_>,
    dialect: Dialect,
    head: &Parts,
    operation: Operation,
    request_id: u64,
    memory: &Arc<Reservation>,
) -> Result<Answer, Error> {
    if let Operation::GetExtendedCard(_) = operation {
        let shown = routes::shown(server_state, endpoint.agent, &head.uri, &head.headers, &head.extensions)?;
        return Ok(Answer::Reply(Reply::Card(Box::new(shown.extended()))));
    }
    let call = endpoint.call(dialect, &head.headers, memory)?;
    server_state.engine.call(call, operation).await.map_err(|error| respond::explain(error, request_id))
}
