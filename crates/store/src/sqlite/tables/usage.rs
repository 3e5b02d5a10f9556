//! What each principal uses, for the caps: open tasks, interrupted tasks and bytes, over all its scopes in its tenant.
//!
//! The bytes of a scope are a column of `scopes`, written once per commit, and tasks are counted in `counts`. From both,
//! the writer loads a principal when it sends its first message with caps, and keeps it up to date in memory from then
//! on; so a message costs a lookup and no query. Principals without caps are not loaded.

use std::collections::HashMap;

use engine::{
    Scope,
    store::{Used, Visibility},
};
use protocol::TaskState;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::counts::Counts;

use super::scopes::Scopes;

/// Scopes of loaded principals before all are forgotten, to be loaded again when they are needed.
const MAX_SCOPES: usize = 100_000;

/// State and visibility of a task, which decide as what it counts.
pub(crate) type Standing = (TaskState, Visibility);

/// The principals that are loaded, and the bytes that the current commit adds.
#[derive(Default)]
pub(crate) struct Usage {
    /// Positions in `used`.
    by_scope: HashMap<i64, usize>,
    by_principal: HashMap<TenantPrincipal, usize>,
    used: Vec<Counted>,
    /// By scope.
    added_bytes: HashMap<i64, i64>,
}

/// Tenant and principal of a scope.
type TenantPrincipal = (String, String);

/// What a principal uses, with the changes of the current commit.
#[derive(Clone, Copy, Default)]
struct Counted {
    open: i64,
    interrupted: i64,
    bytes: i64,
}

impl Counted {
    fn add(&mut self, (state, visibility): Standing, difference: i64) {
        if !state.is_terminal() && matches!(visibility, Visibility::Visible | Visibility::Undecided) {
            self.open += difference;
            self.interrupted += if state.is_interrupted() { difference } else { 0 };
        }
    }
}

impl From<Counted> for Used {
    fn from(counted: Counted) -> Self {
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        Self {
            tasks: count(counted.open),
            interrupted: count(counted.interrupted),
            stored: count(counted.bytes),
        }
    }
}

/// What the counts of a principal are loaded from.
pub(crate) struct Sources<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) counts: &'a Counts,
    pub(crate) scopes: &'a Scopes,
}

impl Usage {
    /// What the principal of a scope uses, whether or not the scope has tasks.
    pub(crate) fn of(&mut self, sources: &Sources<'_>, scope: &Scope) -> rusqlite::Result<Used> {
        if let Some(position) = sources.scopes.cached(scope).and_then(|id| self.by_scope.get(&id)) {
            return Ok(self.used[*position].into());
        }
        let parts = scope.parts();
        let position = self.load(sources, (parts.tenant.clone(), parts.principal.clone()))?;
        Ok(self.used[position].into())
    }

    /// The same for the scope with this id.
    pub(crate) fn of_id(&mut self, sources: &Sources<'_>, scope: i64) -> rusqlite::Result<Used> {
        if let Some(position) = self.by_scope.get(&scope) {
            return Ok(self.used[*position].into());
        }
        let principal = sources
            .connection
            .prepare_cached("SELECT tenant, principal FROM scopes WHERE id = ?1")?
            .query_row(params![scope], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some(principal) = principal else { return Ok(Used::default()) };
        let position = self.load(sources, principal)?;
        Ok(self.used[position].into())
    }

    /// A new task of this scope, which has this id.
    pub(crate) fn add_task(&mut self, scopes: &Scopes, id: i64, scope: &Scope, standing: Standing) {
        // A scope of a loaded principal is either loaded with it or new.
        if !self.used.is_empty() && scopes.may_be_new(id) {
            let parts = scope.parts();
            let principal = (parts.tenant.clone(), parts.principal.clone());
            if let Some(position) = self.by_principal.get(&principal) {
                self.by_scope.insert(id, *position);
            }
        }
        self.count(id, standing, 1);
    }

    /// A task has changed.
    pub(crate) fn change_task(&mut self, scope: i64, before: Standing, after: Standing) {
        self.count(scope, before, -1);
        self.count(scope, after, 1);
    }

    fn count(&mut self, scope: i64, standing: Standing, difference: i64) {
        if let Some(position) = self.by_scope.get(&scope) {
            self.used[*position].add(standing, difference);
        }
    }

    /// Bytes are added to the tasks of a scope, or deleted.
    pub(crate) fn add_bytes(&mut self, scope: i64, bytes: i64) {
        *self.added_bytes.entry(scope).or_default() += bytes;
        if let Some(position) = self.by_scope.get(&scope) {
            self.used[*position].bytes += bytes;
        }
    }

    /// Writes the bytes.
    pub(crate) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for (scope, bytes) in self.added_bytes.drain().filter(|added| added.1 != 0) {
            connection
                .prepare_cached("UPDATE scopes SET stored = stored + ?2 WHERE id = ?1")?
                .execute(params![scope, bytes])?;
        }
        // Only here, because counts that are not written yet are in memory only.
        if self.by_scope.len() > MAX_SCOPES || self.by_principal.len() > MAX_SCOPES {
            self.by_scope.clear();
            self.by_principal.clear();
            self.used.clear();
        }
        Ok(())
    }

    /// Loads a principal, as of the changes of the current commit so far.
    fn load(&mut self, sources: &Sources<'_>, principal: TenantPrincipal) -> rusqlite::Result<usize> {
        if let Some(position) = self.by_principal.get(&principal) {
            return Ok(*position);
        }
        let position = self.used.len();
        let mut sum = Counted::default();
        let mut scopes = sources
            .connection
            .prepare_cached("SELECT id, stored FROM scopes WHERE tenant = ?1 AND principal = ?2")?;
        let mut scopes = scopes.query(params![principal.0, principal.1])?;
        while let Some(row) = scopes.next()? {
            let (id, bytes): (i64, i64) = (row.get(0)?, row.get(1)?);
            sum.bytes += bytes + self.added_bytes.get(&id).copied().unwrap_or_default();
            let undecided = sources.scopes.undecided_of(id);
            sum.add((TaskState::Submitted, Visibility::Undecided), i64::from(undecided));
            for state in TaskState::ALL.into_iter().filter(|state| !state.is_terminal()) {
                let tasks = sources.counts.of(sources.connection, id, state)?;
                sum.add((state, Visibility::Visible), tasks);
            }
            self.by_scope.insert(id, position);
        }
        self.used.push(sum);
        self.by_principal.insert(principal, position);
        Ok(position)
    }
}
