//! Whose notifications are held: those of an agent that is disabled, and of principals that have been revoked.
//!
//! A notification that is due is looked at again now and then instead of being sent, which is no attempt, and at once when what
//! decides about callers has changed. What has waited for too long is given up all the same.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    access::{access_changes::AccessChanges, api_keys::ApiKeys, scope::Scope},
    catalog::CurrentCatalog,
    store::{StoreError, WebhookNo},
};

/// How long a notification is held until it is looked at again without a change.
pub(super) const HOLD_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// The most webhooks that are looked at when something has changed; others wait for the interval.
const MAX_HELD: usize = 8_192;

/// Whether a principal has the name of one whose credential this server cannot verify any more.
pub type IsRevokedPrincipal = dyn Fn(&str) -> bool + Send + Sync;

/// Decides whose notifications are held.
pub(crate) struct Holds {
    pub(crate) catalog: CurrentCatalog,
    pub(crate) api_keys: Arc<ApiKeys>,
    pub(crate) changes: AccessChanges,
    /// Knows the principals that are not of API keys.
    pub(crate) is_revoked: Arc<OnceLock<Box<IsRevokedPrincipal>>>,
    /// The webhooks that are held, with their owners.
    pub(crate) held: Mutex<HashMap<WebhookNo, Scope>>,
}

impl Holds {
    /// Why the notifications of an owner are held; `None` if they are not.
    pub(super) async fn reason(&self, scope: &Scope) -> Result<Option<&'static str>, StoreError> {
        let catalog = self.catalog.load();
        let registered = catalog.get(scope.tenant(), scope.agent());
        let Some(settings) = registered.map(|agent| agent.settings()) else { return Ok(None) };
        if !settings.enabled {
            return Ok(Some("held: the agent is disabled"));
        }
        // Where no credential is verified, names are not those of credentials.
        if !settings.auth.verify_credentials() && !settings.auth.is_unconfigured() {
            return Ok(None);
        }
        if self.api_keys.is_revoked_owner(scope).await? {
            return Ok(Some("held: the API keys of the task's owner are revoked"));
        }
        let is_revoked = self.is_revoked.get().is_some_and(|is_revoked| is_revoked(&scope.parts().principal));
        Ok(is_revoked.then_some(NO_AUTHORITY))
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(super) fn add(&self, webhook: WebhookNo, owner: Scope) {
        let mut held = self.held();
        if held.len() < MAX_HELD {
            held.insert(webhook, owner);
        }
    }

    pub(super) fn remove(&self, webhook: WebhookNo) {
        self.held().remove(&webhook);
    }

    /// Takes the webhooks that are not held any more.
    pub(super) async fn take_released(&self) -> Result<Vec<WebhookNo>, StoreError> {
        let all: Vec<_> = self.held().iter().map(|(webhook, owner)| (*webhook, owner.clone())).collect();
        let mut released = Vec::new();
        for (webhook, owner) in all {
            if self.reason(&owner).await?.is_none() {
                self.held().remove(&webhook);
                released.push(webhook);
            }
        }
        Ok(released)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<WebhookNo, Scope>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const NO_AUTHORITY: &str =
    "held: the secret, issuer or authority that identified the task's owner is not in use any more";
