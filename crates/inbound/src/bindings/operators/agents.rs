//! `/console/api/agents`: lists agents, and enables or disables them.

use axum::response::Response;
use engine::{AgentSwitch, SwitchError, SwitchState};
use http::StatusCode;
use protocol::{Error, ErrorKind, Violation};

use super::{
    OPERATOR, Subject,
    agent_document::{self, OperatorAgent},
    failure, named, query_parameters, respond,
};
use crate::request::exchange::Exchange;

/// `GET`: the agents by id: those of the catalog, or without a configuration those that the store knows.
pub(super) async fn list(exchange: &Exchange) -> Result<Response, Error> {
    let [] = query_parameters(exchange, [])?;
    let counts = exchange.server.engine.operator_tasks().counts().await;
    let counts = counts.map_err(|error| failure(exchange, error))?;
    let (engine, catalog, tenant) =
        (&exchange.server.engine, &exchange.catalog, exchange.endpoint.tenant.id());
    if !engine.knows_agents() {
        let agents = agent_document::stored(&engine.agent_switches(), &counts.agents, tenant);
        return Ok(respond(StatusCode::OK, agents));
    }
    let default = catalog.default_agent(tenant);
    let agents = catalog.agents(tenant).map(|agent| {
        let id = agent.info().id.as_str();
        let tasks = agent_document::tasks_of(&counts.agents, tenant, id);
        let skills = engine.is_serving().then(|| agent.skills().len());
        OperatorAgent { skills, ..OperatorAgent::registered(agent, default == Some(id), tasks) }
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
        tenant: exchange.endpoint.tenant.id().to_owned(),
        agent,
        state,
        at: exchange.now(),
        by: OPERATOR.into(),
    };
    let switched = exchange.server.engine.switch_agent(switch).await.map_err(|error| match error {
        SwitchError::UnknownAgent(_) => Error::new(ErrorKind::AgentDisabled, error.to_string()),
        SwitchError::InvalidAgent => Violation::new("agent", error.to_string()).into(),
        SwitchError::Store(error) => failure(exchange, error),
    })?;
    let state = match switched.state {
        SwitchState::Enabled => "enabled",
        SwitchState::Disabled => "disabled",
    };
    tracing::info!(agent = switched.agent, state, "agent switched by an operator");
    Ok(respond(StatusCode::OK, agent_document::switched(&switched)))
}
