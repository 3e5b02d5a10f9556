//! Finds tasks past their retention time or input timeout.
//!
//! Uses the list indexes that exist anyway, scope by scope from the oldest status on, so that no write has to
//! maintain an additional index. Nothing is deleted here.

use engine::{
    ids::{Ids, TaskNo},
    store::{Expired, Expiry, FinishedTask},
};
use rusqlite::{Connection, Row, named_params, params};

use super::{readers::Failure, rows};

/// Finds tasks to purge and tasks to fail, at most `expiry.max` of each.
pub(super) fn find(tx: &Connection, ids: &Ids, expiry: &Expiry) -> Result<Expired, Failure> {
    let mut scopes = tx.prepare_cached("SELECT id FROM scopes WHERE agent = ?1")?;
    let scopes = scopes.query_map(params![expiry.agent], |row| row.get(0))?;
    let scopes = scopes.collect::<rusqlite::Result<Vec<i64>>>()?;
    let mut expired = Expired::default();
    for scope in &scopes {
        let remaining = expiry.max.saturating_sub(expired.finished.len());
        let ended_before = expiry.ended_before.as_millis();
        expired.finished.extend(
            oldest_finished(tx, *scope, ended_before, remaining)?.into_iter().map(|(_, ended)| ended),
        );
        let remaining = expiry.max.saturating_sub(expired.finished.len());
        expired.finished.extend(oldest_hidden(tx, *scope, ended_before, remaining)?);
        let remaining = expiry.max.saturating_sub(expired.waiting.len());
        let since = expiry.waiting_since.as_millis();
        expired.waiting.extend(rows::waiting(tx, ids, *scope, since, remaining)?);
    }
    if let (true, Some(max_tasks)) = (expired.finished.is_empty(), expiry.max_tasks) {
        expired.finished = oldest_above_limit(tx, &scopes, max_tasks, expiry.max)?;
    }
    Ok(expired)
}

/// Every agent that ever had a task in this store.
pub(super) fn agents(tx: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = tx.prepare_cached("SELECT DISTINCT agent FROM scopes")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// The oldest finished tasks of a scope that ended before a time, each with its end time.
fn oldest_finished(
    tx: &Connection,
    scope: i64,
    before: i64,
    max: usize,
) -> rusqlite::Result<Vec<(i64, FinishedTask)>> {
    let mut statement = tx.prepare_cached(
        "SELECT status_at, n, last_seq FROM tasks
         WHERE scope = :scope AND visible = 1 AND status_at < :before AND state IN (3, 4, 5, 7)
         ORDER BY status_at, n LIMIT :max",
    )?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let params = named_params! { ":scope": scope, ":before": before, ":max": max };
    statement.query_map(params, |row| Ok((row.get(0)?, ended_task(row, 1)?)))?.collect()
}

/// The oldest tasks of a scope that lists do not include because the reply was a bare message.
fn oldest_hidden(
    tx: &Connection,
    scope: i64,
    before: i64,
    max: usize,
) -> rusqlite::Result<Vec<FinishedTask>> {
    let mut statement = tx.prepare_cached(
        "SELECT n, last_seq FROM tasks WHERE scope = ?1 AND visible = 2 AND status_at < ?2 ORDER BY status_at LIMIT ?3",
    )?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    statement.query_map(params![scope, before, max], |row| ended_task(row, 0))?.collect()
}

/// The oldest finished tasks above the limit `max_tasks`, over all scopes.
fn oldest_above_limit(
    tx: &Connection,
    scopes: &[i64],
    max_tasks: u64,
    max: usize,
) -> rusqlite::Result<Vec<FinishedTask>> {
    let mut total = 0i64;
    for scope in scopes {
        total += tx
            .prepare_cached(
                "SELECT coalesce(sum(n), 0) FROM counts WHERE scope = ?1 AND state IN (3, 4, 5, 7)",
            )?
            .query_row(params![scope], |row| row.get::<_, i64>(0))?;
    }
    let surplus = total.unsigned_abs().saturating_sub(max_tasks);
    let surplus = usize::try_from(surplus).unwrap_or(usize::MAX).min(max);
    if surplus == 0 {
        return Ok(Vec::new());
    }
    let mut oldest = Vec::new();
    for scope in scopes {
        oldest.extend(oldest_finished(tx, *scope, i64::MAX, surplus)?);
    }
    oldest.sort_unstable_by_key(|(at, ended)| (*at, ended.no));
    Ok(oldest.into_iter().take(surplus).map(|(_, ended)| ended).collect())
}

/// Number of open tasks of an agent.
pub(super) fn count_open(tx: &Connection, agent: &str) -> rusqlite::Result<u64> {
    tx.prepare_cached(
        "SELECT coalesce(sum(counts.n), 0) FROM counts JOIN scopes ON scopes.id = counts.scope
         WHERE agent = ?1 AND state IN (1, 2, 6, 8)",
    )?
    .query_row(params![agent], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

fn ended_task(row: &Row<'_>, at: usize) -> rusqlite::Result<FinishedTask> {
    Ok(FinishedTask { no: TaskNo(row.get(at)?), last_seq: row.get::<_, i64>(at + 1)?.unsigned_abs() })
}
