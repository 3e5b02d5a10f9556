//! Owners as numbers. The numbers never change, so they are remembered.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use engine::Scope;
use rusqlite::{Connection, OptionalExtension as _, params};

/// How many owners are remembered before starting over.
const REMEMBERED: usize = 10_000;

/// The owners met so far. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Scopes(Arc<RwLock<HashMap<Scope, i64>>>);

/// An owner that a reader may have to look up.
pub(super) struct Unresolved {
    scopes: Scopes,
    scope: Scope,
}

impl Scopes {
    /// An owner for a reader to resolve inside its transaction.
    pub(super) fn reader(&self, scope: &Scope) -> Unresolved {
        Unresolved { scopes: self.clone(), scope: scope.clone() }
    }

    /// The number of an owner; made when it is new. For the writer.
    pub(super) fn intern(&self, connection: &Connection, scope: &Scope) -> rusqlite::Result<i64> {
        if let Some(id) = self.known(scope) {
            return Ok(id);
        }
        let parts = scope.parts();
        connection
            .prepare_cached(
                "INSERT INTO scopes (tenant, principal, agent, end_user) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![parts.tenant, parts.principal, parts.agent, parts.end_user])?;
        // Not remembered here: the transaction may still fail. A reader remembers it once it is committed.
        select(connection, scope)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
    }

    fn known(&self, scope: &Scope) -> Option<i64> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(scope).copied()
    }

    /// Remembers a number that is committed.
    pub(super) fn remember(&self, scope: Scope, id: i64) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(scope, id);
    }
}

impl Unresolved {
    /// The owner's number; `None` when it owns nothing yet.
    pub(super) fn resolve(self, connection: &Connection) -> rusqlite::Result<Option<i64>> {
        if let Some(id) = self.scopes.known(&self.scope) {
            return Ok(Some(id));
        }
        let found = select(connection, &self.scope)?;
        if let Some(id) = found {
            self.scopes.remember(self.scope, id);
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
