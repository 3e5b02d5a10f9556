//! `/console/api/keys`: lists, makes and revokes API keys.

use axum::{body::Body, response::Response};
use engine::{ApiKey, ApiKeyError, AuthMethod, NewApiKey};
use http::StatusCode;
use protocol::{Error, ErrorKind, Violation, error::excerpt};

use super::{Subject, failure, key_document, named, query_parameters, read_object, respond};
use crate::request::exchange::Exchange;

/// `GET`, with `?agent=` those of one agent.
pub(super) async fn list(exchange: &Exchange) -> Result<Response, Error> {
    let [agent] = query_parameters(exchange, ["agent"])?;
    let mut keys = read_all(exchange).await?;
    keys.retain(|key| agent.as_ref().is_none_or(|agent| key.agent == *agent));
    Ok(respond(StatusCode::OK, key_document::list(&keys)))
}

/// `POST`: the only response with the text of the key.
pub(super) async fn create(
    exchange: &Exchange,
    body: Body,
    subject: &mut Subject,
) -> Result<Response, Error> {
    let wanted = read_object(exchange, body, &["agent", "owner"], |object| {
        let owner = object.maybe("owner", |node| node.short_string())?;
        Ok((object.need_text("agent")?, owner.map(std::borrow::Cow::into_owned)))
    });
    let (agent, owner) = wanted.await?;
    subject.agent = Some(excerpt(&agent));
    let options = &exchange.server.api_keys;
    let new = NewApiKey {
        tenant: exchange.endpoint.tenant.id(),
        agent: &agent,
        owner: owner.as_deref(),
        prefix: &options.prefix,
    };
    let created = exchange.server.engine.create_api_key(&new, options.max_per_agent).await;
    let (key, text) = created.map_err(|error| refused(exchange, error))?;
    subject.key = Some(key.id.clone());
    tracing::info!(key = key.id, agent, owner = key.owner, "API key made");
    let registered = exchange.catalog.get(exchange.endpoint.tenant.id(), &agent);
    let is_refused = registered.is_some_and(|agent| !agent.settings().auth.contains(AuthMethod::ApiKey));
    let warning = is_refused.then(|| key_document::not_accepted(&agent));
    Ok(respond(StatusCode::CREATED, key_document::created(&key, &text, warning.as_deref())))
}

/// `DELETE`: the response is the revoked key.
pub(super) async fn revoke(exchange: &Exchange, subject: &mut Subject) -> Result<Response, Error> {
    let id = named(exchange);
    subject.key = Some(excerpt(&id));
    let revoked = exchange.server.engine.revoke_api_key(&id).await;
    let unknown = || {
        let text = format!("there is no valid API key with the id {:?}", excerpt(&id));
        Error::new(ErrorKind::NotFound, text)
    };
    if !revoked.map_err(|error| failure(exchange, error))? {
        return Err(unknown());
    }
    let key = read_all(exchange).await?.into_iter().find(|key| key.id == id).ok_or_else(unknown)?;
    subject.agent = Some(key.agent.clone());
    tracing::info!(key = key.id, agent = key.agent, owner = key.owner, "API key revoked");
    Ok(respond(StatusCode::OK, key_document::one(&key)))
}

/// All keys of the tenant, newest first.
async fn read_all(exchange: &Exchange) -> Result<Vec<ApiKey>, Error> {
    let keys = exchange.server.engine.api_keys().list().await;
    let mut keys = keys.map_err(|error| failure(exchange, error))?;
    keys.retain(|key| key.tenant == exchange.endpoint.tenant.id());
    Ok(keys)
}

fn refused(exchange: &Exchange, error: ApiKeyError) -> Error {
    let text = error.to_string();
    match error {
        ApiKeyError::TooMany(max) => Error::new(ErrorKind::Conflict, text).with("maxPerAgent", max),
        ApiKeyError::UnknownAgent(_) => Error::new(ErrorKind::AgentDisabled, text),
        ApiKeyError::Owner => Violation::new("owner", text).into(),
        ApiKeyError::Agent => Violation::new("agent", text).into(),
        ApiKeyError::Prefix => failure(exchange, engine::Error::Broken(text)),
        ApiKeyError::Store(error) => failure(exchange, error),
    }
}
