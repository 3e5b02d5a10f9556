//! Keys at a server, and in a store that no server has open. Both return the documents of the operators' API.

use std::sync::Arc;

use engine::{ApiKey, ApiKeyError, ApiKeys, DEFAULT_TENANT, NewApiKey};
use http::Method;
use inbound::{ApiKeyOptions, AuditEntry, key_document};
use protocol::json::write::Writer;

use crate::{
    cli::{
        failure::{Failure, code},
        operate::{Access, StoppedStore, find_agent, with_query},
    },
    config::OperatorView,
};

/// All keys, or those of one agent.
pub(super) async fn list(access: &Access, agent: Option<&str>) -> Result<Vec<u8>, Failure> {
    match access {
        Access::Server(server) => server.get(&with_query("/keys", &[("agent", agent)])).await,
        Access::Store(store) => {
            let mut keys = all(store).await?;
            keys.retain(|key| agent.is_none_or(|agent| key.agent == agent));
            Ok(key_document::list(&keys))
        }
    }
}

/// Makes a key.
pub(super) async fn create(access: &Access, agent: &str, owner: Option<&str>) -> Result<Vec<u8>, Failure> {
    let store = match access {
        Access::Server(server) => {
            let mut writer = Writer::new();
            writer.object(|out| {
                out.text("agent", agent);
                out.maybe_text("owner", owner);
            });
            return server.send(Method::POST, "/keys", writer.finish()).await;
        }
        Access::Store(store) => store,
    };
    let warning = check_agent(store.config.as_ref(), agent)?;
    let configured = store.config.as_ref().map(|config| config.api_keys.clone());
    let ApiKeyOptions { prefix, max_per_agent } = configured.unwrap_or_default();
    let new = NewApiKey { tenant: DEFAULT_TENANT, agent, owner, prefix: &prefix };
    let (key, text) = keys(store).create(&new, max_per_agent, store.clock.now()).await?;
    store.record(entry(store, "key.create", &key)).await?;
    Ok(key_document::created(&key, &text, warning.as_deref()))
}

/// Revokes a key.
pub(super) async fn revoke(access: &Access, id: &str) -> Result<Vec<u8>, Failure> {
    let unknown = || {
        let text = format!("there is no valid API key with the id {id:?}");
        Failure::new(code::NOT_FOUND, text)
    };
    match access {
        Access::Server(_) if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            Err(unknown())
        }
        Access::Server(server) => server.send(Method::DELETE, &format!("/keys/{id}"), Vec::new()).await,
        Access::Store(store) => {
            let revoked = keys(store).revoke(id, store.clock.now()).await?;
            let found = all(store).await?.into_iter().find(|key| revoked && key.id == id);
            let key = found.ok_or_else(unknown)?;
            store.record(entry(store, "key.revoke", &key)).await?;
            Ok(key_document::one(&key))
        }
    }
}

/// Checks that the agent exists, if the configuration is known; returns a warning if it does not accept keys.
pub(super) fn check_agent(config: Option<&OperatorView>, agent: &str) -> Result<Option<String>, Failure> {
    let Some(found) = find_agent(config, agent)? else { return Ok(None) };
    Ok((!found.accepts_api_keys).then(|| key_document::not_accepted(agent)))
}

fn entry(store: &StoppedStore, action: &'static str, key: &ApiKey) -> AuditEntry {
    AuditEntry { agent: Some(key.agent.clone()), key: Some(key.id.clone()), ..store.change(action) }
}

fn keys(store: &StoppedStore) -> ApiKeys {
    ApiKeys::new(Arc::clone(&store.store))
}

async fn all(store: &StoppedStore) -> Result<Vec<ApiKey>, Failure> {
    let mut keys = keys(store).list().await?;
    keys.retain(|key| key.tenant == DEFAULT_TENANT);
    Ok(keys)
}

impl From<ApiKeyError> for Failure {
    fn from(error: ApiKeyError) -> Self {
        let text = error.to_string();
        let code = match error {
            ApiKeyError::TooMany(_) => code::PROTOCOL,
            ApiKeyError::UnknownAgent(_) => code::NOT_FOUND,
            ApiKeyError::Owner | ApiKeyError::Prefix | ApiKeyError::Agent => code::USAGE,
            ApiKeyError::Store(error) => return error.into(),
        };
        Self::new(code, text)
    }
}
