//! Keys in a store that no server has open.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use engine::{ApiKey, ApiKeyError, ApiKeys, Clock, DEFAULT_TENANT, Feed, NewApiKey, store::StoreError};
use inbound::{ApiKeyOptions, key_document};
use store::{OpenError, Sqlite, SqliteOptions};

use crate::{
    cli::failure::{Failure, code},
    config::OperatorView,
    nearest,
};

pub(super) struct StoppedStore {
    keys: ApiKeys,
    path: PathBuf,
    clock: Clock,
    /// `None` if it is not known which configuration the server has.
    config: Option<OperatorView>,
}

impl StoppedStore {
    /// Opens the store; creates it if there is none.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let clock = Clock::system();
        let store = Sqlite::open(&SqliteOptions::at(path), Feed::default(), &clock)?;
        Ok(Self { keys: ApiKeys::new(Arc::new(store)), path: path.to_owned(), clock, config: None })
    }

    pub(super) fn with_config(self, config: Option<OperatorView>) -> Self {
        Self { config, ..self }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn list(&self, agent: Option<&str>) -> Result<Vec<u8>, Failure> {
        let mut keys = self.all().await?;
        keys.retain(|key| agent.is_none_or(|agent| key.agent == agent));
        Ok(key_document::list(&keys))
    }

    pub(super) async fn create(&self, agent: &str, owner: Option<&str>) -> Result<Vec<u8>, Failure> {
        let warning = check_agent(self.config.as_ref(), agent)?;
        let configured = self.config.as_ref().map(|config| config.api_keys.clone());
        let ApiKeyOptions { prefix, max_per_agent } = configured.unwrap_or_default();
        let new = NewApiKey { tenant: DEFAULT_TENANT, agent, owner, prefix: &prefix };
        let (key, text) = self.keys.create(&new, max_per_agent, self.clock.now()).await?;
        Ok(key_document::created(&key, &text, warning.as_deref()))
    }

    pub(super) async fn revoke(&self, id: &str) -> Result<Vec<u8>, Failure> {
        let revoked = self.keys.revoke(id, self.clock.now()).await?;
        let found = self.all().await?.into_iter().find(|key| revoked && key.id == id);
        let unknown = || {
            let text = format!("there is no valid API key with the id {id:?}");
            Failure::new(code::NOT_FOUND, text)
        };
        Ok(key_document::one(&found.ok_or_else(unknown)?))
    }

    async fn all(&self) -> Result<Vec<ApiKey>, Failure> {
        let mut keys = self.keys.list().await?;
        keys.retain(|key| key.tenant == DEFAULT_TENANT);
        Ok(keys)
    }
}

/// Checks that the agent exists, if the configuration is known; returns a warning if it does not accept keys.
pub(super) fn check_agent(config: Option<&OperatorView>, agent: &str) -> Result<Option<String>, Failure> {
    let Some(config) = config else { return Ok(None) };
    let Some(found) = config.agents.iter().find(|found| found.id == agent) else {
        let hint = nearest::hint(agent, config.agents.iter().map(|agent| agent.id.as_str()));
        let text = format!("the configuration has no agent {agent:?}");
        return Err(Failure::new(code::NOT_FOUND, text).with_next(hint));
    };
    Ok((!found.accepts_api_keys).then(|| key_document::not_accepted(agent)))
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

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(code::ERROR, error.to_string())
    }
}
