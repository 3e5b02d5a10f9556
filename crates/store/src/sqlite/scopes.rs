//! Maps scopes to their integer ids. Ids never change, so they are cached.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use engine::Scope;
use rusqlite::{Connection, OptionalExtension as _, params};

/// Cached scopes before the cache is cleared.
const MAX_CACHED: usize = 10_000;

/// The cache of scope ids. Clones share it.
#[derive(Clone, Default)]
pub(super) struct ScopeCache(Arc<RwLock<HashMap<Scope, i64>>>);

/// A scope whose id a reader may have to look up.
pub(super) struct UnresolvedScope {
    scopes: ScopeCache,
    scope: Scope,
}

impl ScopeCache {
    /// A scope for a reader to resolve inside its transaction.
    pub(super) fn unresolved(&self, scope: &Scope) -> UnresolvedScope {
        UnresolvedScope { scopes: self.clone(), scope: scope.clone() }
    }

    /// The id of a scope, inserted if it is new. For the writer only.
    pub(super) fn intern(&self, connection: &Connection, scope: &Scope) -> rusqlite::Result<i64> {
        if let Some(id) = self.get(scope) {
            return Ok(id);
        }
        let parts = scope.parts();
        connection
            .prepare_cached(
                "INSERT INTO scopes (tenant, principal, agent, end_user) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![parts.tenant, parts.principal, parts.agent, parts.end_user])?;
        // Not cached here: the transaction may still fail. A reader caches it once it is committed.
        select(connection, scope)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    fn get(&self, scope: &Scope) -> Option<i64> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(scope).copied()
    }

    /// Caches a committed id.
    pub(super) fn insert(&self, scope: Scope, id: i64) {
        let mut cached = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(scope, id);
    }
}

impl UnresolvedScope {
    /// The id of the scope; `None` when it owns nothing yet.
    pub(super) fn resolve(self, connection: &Connection) -> rusqlite::Result<Option<i64>> {
        if let Some(id) = self.scopes.get(&self.scope) {
            return Ok(Some(id));
        }
        let found = select(connection, &self.scope)?;
        if let Some(id) = found {
            self.scopes.insert(self.scope, id);
        }
        Ok(found)
    }
}

fn select(connection: &Connection, scope: &Scope) -> rusqlite::Result<Option<i64>> {
    let parts = scope.parts();
    connection
        .prepare_cached(
            "SELECT id FROM scopes WHERE tenant = ?1 AND principal = ?2 AND agent = ?3 AND end_user = ?4",
        )?
        .query_row(params![parts.tenant, parts.principal, parts.agent, parts.end_user], |row| row.get(0))
        .optional()
}
