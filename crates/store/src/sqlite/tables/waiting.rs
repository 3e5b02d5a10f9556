//! Tasks that wait for their client. They are also in the table `waiting`, by agent and skill, because each skill may
//! have its own input timeout: a task that may wait for long is not read again and again to find those that may not.

use engine::{
    ids::Ids,
    store::{Expiry, TaskRow},
};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::sqlite::reads::readers::Failure;

use super::rows::{self, select_tasks};

/// Records that a visible task waits, since its last status.
pub(crate) fn add(connection: &Connection, n: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO waiting (n, tenant, agent, skill, since)
             SELECT n, tenant, agent, coalesce(skill, ''), status_at
             FROM tasks JOIN scopes ON scopes.id = tasks.scope WHERE n = ?1 AND visible = 1",
        )?
        .execute(params![n])
        .map(drop)
}

/// Records that a task does not wait any more.
pub(crate) fn remove(connection: &Connection, n: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM waiting WHERE n = ?1")?.execute(params![n]).map(drop)
}

/// Tasks of an agent that have waited too long, longest first, at most `expiry.max`.
pub(crate) fn expired(tx: &Connection, ids: &Ids, expiry: &Expiry) -> Result<Vec<TaskRow>, Failure> {
    let (tenant, agent) = (&expiry.owner.tenant, &expiry.owner.agent);
    let max = i64::try_from(expiry.max).unwrap_or(i64::MAX);
    let mut found: Vec<(i64, i64)> = Vec::new();
    // Tasks without a skill come first.
    let mut skill = Some(String::new());
    while let Some(current) = skill {
        let since = expiry.waiting_since.of_skill(&current).as_millis();
        let mut waiting = tx.prepare_cached(WAITING)?;
        let waiting = waiting
            .query_map(params![tenant, agent, current, since, max], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for task in waiting {
            found.push(task?);
        }
        let mut next = tx.prepare_cached(NEXT_SKILL)?;
        skill = next.query_row(params![tenant, agent, current], |row| row.get(0)).optional()?;
    }
    found.sort_unstable();
    found.truncate(expiry.max);
    let mut select = tx.prepare_cached(select_tasks!("WHERE n = ?1"))?;
    let rows = found.iter().map(|(_, n)| select.query_row(params![n], |row| rows::task_row(ids, row)));
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) const WAITING: &str = "SELECT since, n FROM waiting INDEXED BY waiting_agent
     WHERE tenant = ?1 AND agent = ?2 AND skill = ?3 AND since < ?4 ORDER BY since LIMIT ?5";

pub(crate) const NEXT_SKILL: &str = "SELECT skill FROM waiting INDEXED BY waiting_agent
     WHERE tenant = ?1 AND agent = ?2 AND skill > ?3 ORDER BY skill LIMIT 1";
