//! Scopes (owners of tasks) and their integer ids: a cache of them, and the deletion of scopes without tasks.
//!
//! An id is never used again, so a cached id of a deleted scope finds nothing. The writer must not use one, though:
//! it removes the scopes it has deleted from the cache before it writes anything else, and a reader whose snapshot may
//! be older than a deletion does not cache what it has found.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use engine::Scope;
use rusqlite::{Connection, OptionalExtension as _, params};

/// Cached scopes before the cache is cleared.
const MAX_CACHED: usize = 10_000;
/// Name in `meta`: no deleted scope had a larger id.
const LAST_DELETED: &str = "last_scope";

/// The cache of scope ids. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ScopeCache(Arc<Shared>);

#[derive(Default)]
struct Shared {
    rows: RwLock<HashMap<Scope, ScopeRow>>,
    /// Number of times that scopes were removed from the cache.
    removals: AtomicU64,
}

/// A stored scope.
#[derive(Clone, Copy)]
pub(crate) struct ScopeRow {
    pub(crate) id: i64,
    /// No finished task of this scope has an earlier status.
    pub(crate) ended_from: i64,
}

/// A scope whose id a reader may have to look up.
pub(crate) struct UnresolvedScope {
    scopes: ScopeCache,
    scope: Scope,
    removals: u64,
}

impl ScopeCache {
    /// A scope for a reader to resolve inside its transaction, which must not have begun yet.
    pub(crate) fn unresolved(&self, scope: &Scope) -> UnresolvedScope {
        let removals = self.0.removals.load(Ordering::SeqCst);
        UnresolvedScope { scopes: self.clone(), scope: scope.clone(), removals }
    }

    fn get(&self, scope: &Scope) -> Option<ScopeRow> {
        self.0.rows.read().unwrap_or_else(PoisonError::into_inner).get(scope).copied()
    }

    /// Caches a committed row that was read when so many removals had been made.
    fn insert(&self, scope: Scope, row: ScopeRow, removals: u64) {
        let mut cached = self.0.rows.write().unwrap_or_else(PoisonError::into_inner);
        if self.0.removals.load(Ordering::SeqCst) != removals {
            return;
        }
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(scope, row);
    }

    fn remove(&self, ids: &HashSet<i64>) {
        let mut cached = self.0.rows.write().unwrap_or_else(PoisonError::into_inner);
        self.0.removals.fetch_add(1, Ordering::SeqCst);
        cached.retain(|_, row| !ids.contains(&row.id));
    }
}

impl UnresolvedScope {
    /// The id of the scope; `None` when it owns nothing.
    pub(crate) fn resolve(self, connection: &Connection) -> rusqlite::Result<Option<i64>> {
        if let Some(row) = self.scopes.get(&self.scope) {
            return Ok(Some(row.id));
        }
        let found = select(connection, &self.scope)?;
        if let Some(row) = found {
            self.scopes.insert(self.scope, row, self.removals);
        }
        Ok(found.map(|row| row.id))
    }
}

/// The writer's use of scopes, with what the current commit changes.
pub(crate) struct Scopes {
    cache: ScopeCache,
    /// Scopes to be cached after the commit.
    interned: Vec<(Scope, ScopeRow)>,
    /// Scopes that may have lost their last task.
    pub(crate) emptied: HashSet<i64>,
    /// Scopes whose rows have changed or are deleted.
    stale: HashSet<i64>,
    /// Number of tasks of each scope that are neither listed nor hidden yet. No index has them.
    undecided: HashMap<i64, u32>,
}

impl Scopes {
    pub(crate) fn load(connection: &Connection, cache: ScopeCache) -> rusqlite::Result<Self> {
        // No other process holds work at this time, so all work that is not done is due.
        let mut undecided = connection.prepare(
            "SELECT scope, count(*) FROM tasks INDEXED BY tasks_due
             WHERE next_run_at IS NOT NULL AND visible = 0 GROUP BY scope",
        )?;
        let undecided = undecided.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let undecided = undecided.collect::<rusqlite::Result<_>>()?;
        Ok(Self { cache, interned: Vec::new(), emptied: HashSet::new(), stale: HashSet::new(), undecided })
    }

    /// The id of the scope of a new task with this status time, inserted if it is new.
    pub(crate) fn intern(
        &mut self,
        connection: &Connection,
        scope: &Scope,
        status_at: i64,
    ) -> rusqlite::Result<i64> {
        let row = match self.cache.get(scope) {
            Some(row) => row,
            None => {
                let row = match select(connection, scope)? {
                    Some(row) => row,
                    None => insert(connection, scope, status_at)?,
                };
                self.interned.push((scope.clone(), row));
                row
            }
        };
        if status_at < row.ended_from {
            self.stale.insert(row.id);
            connection
                .prepare_cached("UPDATE scopes SET ended_from = ?2 WHERE id = ?1 AND ended_from > ?2")?
                .execute(params![row.id, status_at])?;
        }
        Ok(row.id)
    }

    /// Changes the time before which no finished task has its status, unless it was changed since `row` was read.
    pub(crate) fn set_ended_from(
        &mut self,
        connection: &Connection,
        row: ScopeRow,
        ended_from: i64,
    ) -> rusqlite::Result<()> {
        self.stale.insert(row.id);
        connection
            .prepare_cached("UPDATE scopes SET ended_from = ?3 WHERE id = ?1 AND ended_from = ?2")?
            .execute(params![row.id, row.ended_from, ended_from])
            .map(drop)
    }

    /// The id of a scope, if it is cached.
    pub(crate) fn cached(&self, scope: &Scope) -> Option<i64> {
        self.cache.get(scope).map(|row| row.id)
    }

    /// Whether the current commit may have inserted the scope with this id.
    pub(crate) fn may_be_new(&self, id: i64) -> bool {
        self.interned.iter().any(|(_, row)| row.id == id)
    }

    /// The number of tasks whose visibility is not decided.
    pub(crate) fn undecided_of(&self, scope: i64) -> u32 {
        self.undecided.get(&scope).copied().unwrap_or_default()
    }

    /// A new task whose visibility is not decided.
    pub(crate) fn add_undecided(&mut self, scope: i64) {
        *self.undecided.entry(scope).or_default() += 1;
    }

    /// The visibility of such a task is decided.
    pub(crate) fn remove_undecided(&mut self, scope: i64) {
        if let Some(count) = self.undecided.get_mut(&scope) {
            *count -= 1;
            if *count == 0 {
                self.undecided.remove(&scope);
            }
        }
    }

    /// Deletes the scopes that have lost their last task. Called at the end of a transaction, when the counts of
    /// tasks are written.
    pub(crate) fn delete_empty(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for id in std::mem::take(&mut self.emptied) {
            if self.undecided.contains_key(&id) || has_tasks(connection, id)? {
                continue;
            }
            connection
                .prepare_cached(
                    "INSERT INTO meta (key, value) VALUES (?1, ?2)
                     ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)",
                )?
                .execute(params![LAST_DELETED, id])?;
            connection.prepare_cached("DELETE FROM counts WHERE scope = ?1")?.execute(params![id])?;
            let agent: Option<(String, String)> = connection
                .prepare_cached("DELETE FROM scopes WHERE id = ?1 RETURNING tenant, agent")?
                .query_row(params![id], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            if let Some((tenant, agent)) = agent {
                connection
                    .prepare_cached(
                        "DELETE FROM agent_counts WHERE tenant = ?1 AND agent = ?2
                         AND NOT EXISTS (SELECT 1 FROM scopes WHERE tenant = ?1 AND agent = ?2)",
                    )?
                    .execute(params![tenant, agent])?;
            }
            self.stale.insert(id);
        }
        Ok(())
    }

    /// Updates the cache after a commit.
    pub(crate) fn committed(&mut self) {
        if !self.stale.is_empty() {
            self.interned.retain(|(_, row)| !self.stale.contains(&row.id));
            self.cache.remove(&self.stale);
            self.stale.clear();
        }
        let removals = self.cache.0.removals.load(Ordering::SeqCst);
        for (scope, row) in self.interned.drain(..) {
            self.cache.insert(scope, row, removals);
        }
    }
}

fn select(connection: &Connection, scope: &Scope) -> rusqlite::Result<Option<ScopeRow>> {
    let parts = scope.parts();
    connection
        .prepare_cached(
            "SELECT id, ended_from FROM scopes
             WHERE tenant = ?1 AND principal = ?2 AND agent = ?3 AND end_user = ?4",
        )?
        .query_row(params![parts.tenant, parts.principal, parts.agent, parts.end_user], |row| {
            Ok(ScopeRow { id: row.get(0)?, ended_from: row.get(1)? })
        })
        .optional()
}

fn insert(connection: &Connection, scope: &Scope, ended_from: i64) -> rusqlite::Result<ScopeRow> {
    let parts = scope.parts();
    let id = connection
        .prepare_cached(
            "INSERT INTO scopes (id, tenant, principal, agent, end_user, ended_from)
             VALUES (1 + max(coalesce((SELECT max(id) FROM scopes), 0),
                             coalesce((SELECT value FROM meta WHERE key = ?6), 0)), ?1, ?2, ?3, ?4, ?5)
             RETURNING id",
        )?
        .query_row(
            params![parts.tenant, parts.principal, parts.agent, parts.end_user, ended_from, LAST_DELETED],
            |row| row.get(0),
        )?;
    Ok(ScopeRow { id, ended_from })
}

/// Whether the rows of any task of this scope exist, apart from undecided ones.
fn has_tasks(connection: &Connection, scope: i64) -> rusqlite::Result<bool> {
    connection.prepare_cached(HAS_TASKS)?.exists(params![scope])
}

pub(crate) const HAS_TASKS: &str = "SELECT 1 WHERE
     EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_purged_scope WHERE scope = ?1 AND visible = 3)
     OR EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_listed WHERE scope = ?1 AND visible = 1)
     OR EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_hidden WHERE scope = ?1 AND visible = 2)";
