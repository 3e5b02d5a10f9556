//! `/console/api/agents`: lists agents, and enables or disables them.

use axum::response::Response;
use engine::{AgentSwitch, SwitchError, SwitchState};
use http::StatusCode;
use protocol::{Error, ErrorKind};

use super::{
    OPERATOR, Subject, agent_document, agent_document::OperatedAgent, named, query_parameters, respond,
};
use crate::{exchange::Exchange, respond::to_caller_error};

/// `GET`: the agents of the catalog, by id.
pub(super) async fn list(exchange: &Exchange) -> Result<Response, Error> {
    let [] = query_parameters(exchange, [])?;
    let counts = exchange.server.engine.operated_tasks().counts().await;
    let counts = counts.map_err(|error| to_caller_error(error, exchange.request_id))?;
    let (catalog, tenant) = (exchange.catalog(), exchange.tenant);
    let default = catalog.default_agent(tenant);
    let agents = catalog.agents(tenant).map(|agent| {
        let id = agent.info().id.as_str();
        let tasks = agent_document::tasks_of(&counts.agents, tenant, id);
        OperatedAgent::registered(agent, default == Some(id), tasks)
    });
    Ok(respond(StatusCode::OK, agent_document::list(agents)))
}

/// `POST …/enable` and `POST …/disable`: in force when the response is sent.
pub(super) async fn switch(
    exchange: &Exchange,
    state: SwitchState,
    subject: &mut Subject,
) -> Result<Response, Error> {
    let [] = query_parameters(exchange, [])?;
    let agent = named(exchange);
    subject.agent = Some(agent.clone());
    let switch = AgentSwitch {
        tenant: exchange.tenant.to_owned(),
        agent,
        state,
        at: exchange.now(),
        by: OPERATOR.into(),
    };
    let switched = exchange.server.engine.switch_agent(switch).await.map_err(|error| match error {
        SwitchError::UnknownAgent(_) => Error::new(ErrorKind::AgentDisabled, error.to_string()),
        SwitchError::Store(error) => to_caller_error(error.into(), exchange.request_id),
    })?;
    tracing::info!(agent = switched.agent, state = ?switched.state, "agent switched by an operator");
    Ok(respond(StatusCode::OK, agent_document::switched(&switched)))
}
