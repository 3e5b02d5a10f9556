//! Finds tasks past their retention time or input timeout.
//!
//! Finished tasks are found owner by owner from the far end of the list index, so that finishing a task adds to no
//! further tree. Which owners to visit is known from `scopes.ended_from`, a lower bound of the status times of a scope's
//! finished tasks: an owner is visited only when one of its tasks may have expired. A visit that finds nothing raises
//! the bound. Nothing is deleted here.

use std::time::Duration;

use engine::{
    ids::{Ids, TaskNo},
    store::{Expired, Expiry, FinishedTask, RetentionMark, TenantAgent},
};
use protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};

use crate::sqlite::files::open::{meta, set_meta};

use super::readers::Failure;

use crate::sqlite::tables::scopes::ScopeRow;

use crate::sqlite::tables::waiting;

/// Owners visited at most to find tasks by their age.
const MAX_VISITS: usize = 256;
/// Owners visited at most to find the oldest tasks of an agent. More, because owners without listed tasks come between.
const MAX_LIMIT_VISITS: usize = 4_096;

/// A scope whose `ended_from` is to be changed to this time.
pub(crate) type RaisedScope = (ScopeRow, i64);

/// Finds tasks to purge and tasks to fail, at most `expiry.max` of each, and the scopes whose bound can be raised.
pub(crate) fn find(
    tx: &Connection,
    ids: &Ids,
    expiry: &Expiry,
) -> Result<(Expired, Vec<RaisedScope>), Failure> {
    let mut search = Search { tx, expiry, finished: Vec::new(), raised: Vec::new(), more: false };
    search.by_age()?;
    if let (false, true, Some(max_tasks)) = (search.more, search.finished.is_empty(), expiry.max_tasks) {
        search.above_limit(max_tasks)?;
    }
    let waiting = waiting::expired(tx, ids, expiry)?;
    let full = search.finished.len() == expiry.max || waiting.len() == expiry.max;
    let finished = search.finished.into_iter().map(|(_, task)| task).collect();
    Ok((Expired { finished, waiting, more: search.more || full }, search.raised))
}

struct Search<'a> {
    tx: &'a Connection,
    expiry: &'a Expiry,
    /// With the time of the status.
    finished: Vec<(i64, FinishedTask)>,
    raised: Vec<RaisedScope>,
    /// There are owners that were not visited.
    more: bool,
}

impl Search<'_> {
    /// Finds tasks that ended before the time of the query.
    fn by_age(&mut self) -> rusqlite::Result<()> {
        let (before, max) = (self.expiry.ended_before.as_millis(), self.expiry.max);
        // A clock that was ahead has left bounds in the future, behind which tasks of today are not found.
        for scope in self.scopes(SCOPES_AHEAD, self.expiry.now.as_millis(), MAX_VISITS)? {
            self.correct(scope)?;
        }
        let scopes = self.scopes(SCOPES, before, MAX_VISITS)?;
        self.more = scopes.len() == MAX_VISITS;
        for scope in scopes {
            let known = self.finished.len();
            let found = oldest_finished(self.tx, scope.id, before, self.kept_since(), max - known)?;
            self.finished.extend(found);
            let found = oldest_hidden(self.tx, scope.id, before, max - self.finished.len())?;
            self.finished.extend(found);
            if self.finished.len() == max {
                self.more = true;
                break;
            }
            if self.finished.len() == known {
                self.correct(scope)?;
            }
        }
        Ok(())
    }

    /// Finds the oldest finished tasks above the limit, over all scopes. Scopes are visited in the order of their
    /// bounds, until no other one can have an older task.
    fn above_limit(&mut self, max_tasks: u64) -> rusqlite::Result<()> {
        let surplus = count_finished(self.tx, &self.expiry.owner)?.saturating_sub(max_tasks);
        let surplus = usize::try_from(surplus).unwrap_or(usize::MAX).min(self.expiry.max);
        if surplus == 0 {
            return Ok(());
        }
        let scopes = self.scopes(SCOPES, i64::MAX, MAX_LIMIT_VISITS)?;
        self.more = scopes.len() == MAX_LIMIT_VISITS;
        for scope in scopes {
            if self.finished.get(surplus - 1).is_some_and(|(at, _)| *at < scope.ended_from) {
                self.more = false;
                break;
            }
            self.finished.extend(oldest_finished(self.tx, scope.id, i64::MAX, self.kept_since(), surplus)?);
            self.finished.sort_unstable_by_key(|(at, ended)| (*at, ended.no));
            self.finished.truncate(surplus);
            self.correct(scope)?;
        }
        // Scopes that were not visited may have older tasks. With raised bounds the next query comes further; without
        // any, it would find the same.
        match self.raised.is_empty() {
            true => self.more &= !self.finished.is_empty(),
            false if self.more => self.finished.clear(),
            false => {}
        }
        Ok(())
    }

    /// Notifications that became due after this time keep their tasks.
    fn kept_since(&self) -> i64 {
        self.expiry.now.as_millis().saturating_sub(KEPT_FOR_DELIVERIES)
    }

    /// Scopes of the agent with a bound on one side of a time, in the order of their bounds.
    fn scopes(&self, statement: &str, time: i64, max: usize) -> rusqlite::Result<Vec<ScopeRow>> {
        let TenantAgent { tenant, agent } = &self.expiry.owner;
        let mut scopes = self.tx.prepare_cached(statement)?;
        let limit = i64::try_from(max).unwrap_or(i64::MAX);
        let scopes = scopes.query_map(params![tenant, agent, time, limit], |row| {
            Ok(ScopeRow { id: row.get(0)?, ended_from: row.get(1)? })
        })?;
        scopes.collect()
    }

    /// Sets the bound of a scope to its oldest finished task. A task that is open now will end later than now.
    fn correct(&mut self, scope: ScopeRow) -> rusqlite::Result<()> {
        // The bound covers tasks that are kept for their deliveries too.
        let oldest = oldest_finished(self.tx, scope.id, i64::MAX, i64::MAX, 1)?.first().map(|(at, _)| *at);
        let hidden = oldest_hidden(self.tx, scope.id, i64::MAX, 1)?.first().map(|(at, _)| *at);
        let now = self.expiry.now.as_millis();
        let bound = [oldest, hidden].into_iter().flatten().fold(now, i64::min);
        if bound != scope.ended_from {
            self.raised.push((scope, bound));
        }
        Ok(())
    }
}

pub(crate) const SCOPES: &str = "SELECT id, ended_from FROM scopes INDEXED BY scopes_ended
     WHERE tenant = ?1 AND agent = ?2 AND ended_from < ?3 ORDER BY ended_from LIMIT ?4";

pub(crate) const SCOPES_AHEAD: &str = "SELECT id, ended_from FROM scopes INDEXED BY scopes_ended
     WHERE tenant = ?1 AND agent = ?2 AND ended_from > ?3 ORDER BY ended_from LIMIT ?4";

/// Every agent that has a task in this store, with its tenant.
pub(crate) fn agents(tx: &Connection) -> rusqlite::Result<Vec<TenantAgent>> {
    let mut agents: Vec<TenantAgent> = Vec::new();
    let read = |row: &Row<'_>| Ok(TenantAgent { tenant: row.get(0)?, agent: row.get(1)? });
    let mut next = tx.prepare_cached(FIRST_AGENT)?.query_row([], read).optional()?;
    while let Some(last) = next {
        // A comparison of both columns at once would read every owner of the last agent.
        let same_tenant = params![last.tenant, last.agent];
        next = tx.prepare_cached(NEXT_AGENT)?.query_row(same_tenant, read).optional()?;
        if next.is_none() {
            next = tx.prepare_cached(NEXT_TENANT)?.query_row(params![last.tenant], read).optional()?;
        }
        agents.push(last);
    }
    Ok(agents)
}

pub(crate) const FIRST_AGENT: &str =
    "SELECT tenant, agent FROM scopes INDEXED BY scopes_ended ORDER BY tenant, agent LIMIT 1";

pub(crate) const NEXT_AGENT: &str = "SELECT tenant, agent FROM scopes INDEXED BY scopes_ended
     WHERE tenant = ?1 AND agent > ?2 ORDER BY agent LIMIT 1";

pub(crate) const NEXT_TENANT: &str = "SELECT tenant, agent FROM scopes INDEXED BY scopes_ended
     WHERE tenant > ?1 ORDER BY tenant, agent LIMIT 1";

/// How long a notification that is to be delivered keeps its task.
const KEPT_FOR_DELIVERIES: i64 = 24 * 60 * 60 * 1_000;

/// The oldest finished tasks of a scope that ended before a time, each with its end time. Tasks with notifications that
/// became due after `kept_since` are left out.
fn oldest_finished(
    tx: &Connection,
    scope: i64,
    before: i64,
    kept_since: i64,
    max: usize,
) -> rusqlite::Result<Vec<(i64, FinishedTask)>> {
    let mut statement = tx.prepare_cached(OLDEST_FINISHED)?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let params = named_params! { ":scope": scope, ":before": before, ":kept_since": kept_since, ":max": max };
    statement.query_map(params, ended_task)?.collect()
}

pub(crate) const OLDEST_FINISHED: &str = "SELECT status_at, n, last_seq FROM tasks INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND status_at < :before AND state IN (3, 4, 5, 7)
       AND NOT (webhooks > 0 AND EXISTS (SELECT 1 FROM webhooks AS pending WHERE pending.n = tasks.n
                                         AND pending.due_since > :kept_since))
     ORDER BY status_at, n LIMIT :max";

/// The oldest tasks of a scope that lists do not include because the reply was a bare message.
fn oldest_hidden(
    tx: &Connection,
    scope: i64,
    before: i64,
    max: usize,
) -> rusqlite::Result<Vec<(i64, FinishedTask)>> {
    let mut statement = tx.prepare_cached(OLDEST_HIDDEN)?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    statement.query_map(params![scope, before, max], ended_task)?.collect()
}

pub(crate) const OLDEST_HIDDEN: &str = "SELECT status_at, n, last_seq FROM tasks INDEXED BY tasks_hidden
     WHERE scope = ?1 AND visible = 2 AND status_at < ?2 ORDER BY status_at LIMIT ?3";

fn ended_task(row: &Row<'_>) -> rusqlite::Result<(i64, FinishedTask)> {
    let task = FinishedTask { no: TaskNo(row.get(1)?), last_seq: row.get::<_, i64>(2)?.unsigned_abs() };
    Ok((row.get(0)?, task))
}

/// Number of open tasks of an agent.
pub(crate) fn count_open(tx: &Connection, owner: &TenantAgent) -> rusqlite::Result<u64> {
    count(tx, "SELECT open FROM agent_counts WHERE tenant = ?1 AND agent = ?2", owner)
}

/// Number of finished tasks of an agent.
fn count_finished(tx: &Connection, owner: &TenantAgent) -> rusqlite::Result<u64> {
    count(tx, "SELECT finished FROM agent_counts WHERE tenant = ?1 AND agent = ?2", owner)
}

fn count(tx: &Connection, statement: &str, owner: &TenantAgent) -> rusqlite::Result<u64> {
    let count = tx
        .prepare_cached(statement)?
        .query_row(params![owner.tenant, owner.agent], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(count.map_or(0, |count| u64::try_from(count).unwrap_or_default()))
}

/// Keys in `meta`: the retention time and how long the clock has been ahead of it, both in milliseconds.
const RETENTION_TIME: &str = "retention_time";
const RETENTION_AHEAD: &str = "retention_ahead";

/// The recorded retention time.
pub(crate) fn retention_mark(tx: &Connection) -> rusqlite::Result<Option<RetentionMark>> {
    let Some(time) = meta(tx, RETENTION_TIME)? else { return Ok(None) };
    let ahead = meta(tx, RETENTION_AHEAD)?.unwrap_or_default();
    Ok(Some(RetentionMark {
        time: Timestamp::from_millis(time),
        ahead_for: Duration::from_millis(u64::try_from(ahead).unwrap_or_default()),
    }))
}

/// Records the retention time.
pub(crate) fn record_retention(connection: &Connection, mark: RetentionMark) -> rusqlite::Result<()> {
    set_meta(connection, RETENTION_TIME, mark.time.as_millis())?;
    let ahead = i64::try_from(mark.ahead_for.as_millis()).unwrap_or(i64::MAX);
    set_meta(connection, RETENTION_AHEAD, ahead)
}
