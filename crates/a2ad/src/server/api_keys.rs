//! API keys for an application that has a server.

use engine::{ApiKey, ApiKeyError, DEFAULT_TENANT, Engine, NewApiKey, store::StoreError};
use inbound::ApiKeyOptions;
use protocol::model::Secret;

/// The API keys of a server. Each is for one agent, whose callers send it in the header `X-Api-Key` or as a bearer token.
///
/// ```
/// # use a2ad::{Server, agents::Echo};
/// # #[tokio::main]
/// # async fn main() -> a2ad::Result<()> {
/// let server = Server::builder().agent("echo", Echo).build()?;
/// let (key, text) = server.api_keys().create("echo", Some("alice")).await?;
/// println!("the new key, which nobody can read again: {}", text.expose());
/// assert_eq!(server.api_keys().list().await?[0].id, key.id);
/// assert!(server.api_keys().revoke(&key.id).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ApiKeys {
    engine: Engine,
    options: ApiKeyOptions,
}

impl ApiKeys {
    pub(super) fn new(engine: Engine, options: ApiKeyOptions) -> Self {
        Self { engine, options }
    }

    /// Makes a key for an agent. Returns its text too, which is kept nowhere. Keys with the same owner are the same caller,
    /// which sees the same tasks; without an owner, the key is a caller of its own.
    ///
    /// # Errors
    ///
    /// See [`ApiKeyError`]; among them that the agent has 20 valid keys.
    pub async fn create(&self, agent: &str, owner: Option<&str>) -> Result<(ApiKey, Secret), ApiKeyError> {
        let ApiKeyOptions { prefix, max_per_agent } = &self.options;
        let new = NewApiKey { tenant: DEFAULT_TENANT, agent, owner, prefix };
        self.engine.create_api_key(&new, *max_per_agent).await
    }

    /// All keys, newest first, also those that are revoked.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.engine.api_keys().list().await
    }

    /// Revokes the key with this id: calls that arrive after this returns are refused. `false` if there is no valid key
    /// with this id.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub async fn revoke(&self, id: &str) -> Result<bool, StoreError> {
        self.engine.revoke_api_key(id).await
    }
}
