//! What operators read: tasks of all owners, newest first, and counts.
//!
//! Open tasks are found by the indexes of queued, held and waiting work, which are as long as the work that is open. No
//! index over all owners has finished tasks, because every commit would have to maintain it: these are found in the order
//! of the primary key, at most [`MAX_EXAMINED`] for each page.

use engine::{
    Scope, ScopeParts,
    ids::{Ids, Tag, TaskNo},
    store::{
        AgentTaskCounts, MAX_EXAMINED, OperatorPage, OperatorQuery, OwnedTask, TaskCounts, TaskRow,
        TenantAgent,
    },
};
use protocol::{TaskState, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};

use super::readers::Failure;

use crate::sqlite::tables::rows::{select_tasks, task_row};

/// How many rows of counts are added up.
const MAX_COUNTED: i64 = 200_000;

/// A page of visible tasks of all owners.
pub(crate) fn list(tx: &Connection, ids: &Ids, query: &OperatorQuery) -> Result<OperatorPage, Failure> {
    let (page, examined) = match query.state {
        Some(TaskState::Submitted | TaskState::Working) => (PAGE_OF_WORK, EXAMINED_WORK),
        Some(TaskState::InputRequired | TaskState::AuthRequired) => (PAGE_OF_WAITING, EXAMINED_WAITING),
        Some(
            TaskState::Completed
            | TaskState::Failed
            | TaskState::Canceled
            | TaskState::Rejected
            | TaskState::Unspecified,
        )
        | None => (PAGE, EXAMINED),
    };
    let before = query.before.map_or(i64::MAX, |task| task.0);
    let size = query.size.max(1);
    let most = i64::try_from(MAX_EXAMINED).unwrap_or(i64::MAX);
    let mut statement = tx.prepare_cached(page)?;
    let params = named_params! {
        ":before": before,
        ":examined": most,
        ":tenant": query.tenant,
        ":agent": query.agent,
        ":principal": query.principal,
        ":state": query.state.map(TaskState::number),
        ":since": query.since.map_or(i64::MIN, Timestamp::as_millis),
        ":limit": i64::try_from(size + 1).unwrap_or(i64::MAX),
    };
    let rows = statement.query_map(params, |row| Ok((TaskNo(row.get(0)?), task_row(ids, row))))?;
    let mut rows: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
    let is_full = rows.len() > size;
    rows.truncate(size);
    let next = if is_full {
        rows.last().map(|(no, _)| *no)
    } else {
        // Where the search has stopped before the end.
        let (count, last): (i64, Option<i64>) = tx
            .prepare_cached(examined)?
            .query_row(params![before, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
        last.filter(|_| count == most).map(TaskNo)
    };
    let (mut tasks, mut unreadable) = (Vec::with_capacity(rows.len()), 0);
    for (no, row) in rows {
        match owned(tx, row) {
            Ok(owned) => tasks.extend(owned),
            Err(failure) => {
                let what = failure.damage().ok_or(failure)?;
                tracing::error!(task = no.0, what, "a damaged task is left out of a list");
                unreadable += 1;
            }
        }
    }
    Ok(OperatorPage { tasks, next, unreadable })
}

fn owned(tx: &Connection, row: rusqlite::Result<TaskRow>) -> Result<Option<OwnedTask>, Failure> {
    let row = row?;
    Ok(owner(tx, row.no, row.tag)?.map(|scope| OwnedTask { row, scope }))
}

/// The owner of a visible task.
pub(crate) fn owner(tx: &Connection, task: TaskNo, tag: Tag) -> rusqlite::Result<Option<Scope>> {
    let mut statement = tx.prepare_cached(
        "SELECT tenant, principal, agent, end_user FROM tasks JOIN scopes ON scopes.id = tasks.scope
         WHERE n = ?1 AND tag = ?2 AND visible = 1",
    )?;
    statement.query_row(params![task.0, tag.0], scope).optional()
}

fn scope(row: &Row<'_>) -> rusqlite::Result<Scope> {
    Ok(Scope::new(ScopeParts {
        tenant: row.get(0)?,
        principal: row.get(1)?,
        agent: row.get(2)?,
        end_user: row.get(3)?,
    }))
}

/// The counts that the writer keeps, by agent, and the work.
pub(crate) fn counts(tx: &Connection) -> Result<TaskCounts, Failure> {
    let mut counts = TaskCounts::default();
    let mut statement = tx.prepare_cached(COUNTS)?;
    let mut rows = statement.query(params![MAX_COUNTED])?;
    while let Some(row) = rows.next()? {
        let agent = TenantAgent { tenant: row.get(0)?, agent: row.get(1)? };
        let state = TaskState::from_number(row.get(2)?)
            .ok_or_else(|| rusqlite::Error::IntegralValueOutOfRange(2, -1))?;
        let number = row.get::<_, i64>(3)?.unsigned_abs();
        match counts.agents.last_mut() {
            Some(last) if last.agent == agent => last.states.push((state, number)),
            _ => counts.agents.push(AgentTaskCounts { agent, states: vec![(state, number)] }),
        }
    }
    let number = |statement: &str| -> rusqlite::Result<i64> {
        tx.prepare_cached(statement)?.query_row([], |row| row.get(0))
    };
    counts.is_complete = number("SELECT count(*) FROM counts")? <= MAX_COUNTED;
    counts.queued = number(QUEUED)?.unsigned_abs();
    counts.running = number(RUNNING)?.unsigned_abs();
    let oldest: Option<i64> = tx.prepare_cached(OLDEST_DUE)?.query_row([], |row| row.get(0)).optional()?;
    counts.oldest_due = oldest.map(Timestamp::from_millis);
    Ok(counts)
}

const COUNTS: &str = "SELECT tenant, agent, state, sum(n)
     FROM (SELECT scope, state, n FROM counts LIMIT ?1) AS counted JOIN scopes ON scopes.id = counted.scope
     WHERE n > 0 GROUP BY tenant, agent, state ORDER BY tenant, agent, state";

const QUEUED: &str = "SELECT count(*) FROM tasks INDEXED BY tasks_due WHERE next_run_at IS NOT NULL";

const RUNNING: &str = "SELECT count(*) FROM tasks INDEXED BY tasks_held WHERE boot > 0";

const OLDEST_DUE: &str = "SELECT next_run_at FROM tasks INDEXED BY tasks_due
     WHERE next_run_at IS NOT NULL ORDER BY next_run_at LIMIT 1";

const PAGE: &str = select_tasks!(
    "JOIN scopes ON scopes.id = tasks.scope
     WHERE n IN (SELECT n FROM tasks WHERE n < :before ORDER BY n DESC LIMIT :examined)
       AND visible = 1 AND tenant = :tenant AND (:agent IS NULL OR agent = :agent)
       AND (:principal IS NULL OR principal = :principal) AND (:state IS NULL OR state = :state)
       AND status_at >= :since
     ORDER BY n DESC LIMIT :limit"
);

const EXAMINED: &str =
    "SELECT count(*), min(n) FROM (SELECT n FROM tasks WHERE n < ?1 ORDER BY n DESC LIMIT ?2)";

const PAGE_OF_WORK: &str = select_tasks!(
    "JOIN scopes ON scopes.id = tasks.scope
     WHERE n IN (SELECT n FROM (SELECT n FROM tasks INDEXED BY tasks_held WHERE boot > 0
                                UNION ALL SELECT n FROM tasks INDEXED BY tasks_due WHERE next_run_at IS NOT NULL)
                 WHERE n < :before ORDER BY n DESC LIMIT :examined)
       AND visible = 1 AND tenant = :tenant AND (:agent IS NULL OR agent = :agent)
       AND (:principal IS NULL OR principal = :principal) AND (:state IS NULL OR state = :state)
       AND status_at >= :since
     ORDER BY n DESC LIMIT :limit"
);

const EXAMINED_WORK: &str = "SELECT count(*), min(n)
     FROM (SELECT n FROM (SELECT n FROM tasks INDEXED BY tasks_held WHERE boot > 0
                          UNION ALL SELECT n FROM tasks INDEXED BY tasks_due WHERE next_run_at IS NOT NULL)
           WHERE n < ?1 ORDER BY n DESC LIMIT ?2)";

const PAGE_OF_WAITING: &str = select_tasks!(
    "JOIN scopes ON scopes.id = tasks.scope
     WHERE n IN (SELECT n FROM waiting WHERE n < :before ORDER BY n DESC LIMIT :examined)
       AND visible = 1 AND tenant = :tenant AND (:agent IS NULL OR agent = :agent)
       AND (:principal IS NULL OR principal = :principal) AND (:state IS NULL OR state = :state)
       AND status_at >= :since
     ORDER BY n DESC LIMIT :limit"
);

const EXAMINED_WAITING: &str =
    "SELECT count(*), min(n) FROM (SELECT n FROM waiting WHERE n < ?1 ORDER BY n DESC LIMIT ?2)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations;

    #[test]
    fn no_list_of_operators_scans_all_tasks() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrations::run(&mut connection).map_err(drop).unwrap();
        for statement in [PAGE, PAGE_OF_WORK, PAGE_OF_WAITING, EXAMINED_WORK, QUEUED, RUNNING, OLDEST_DUE] {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
            let mut rows = plan.raw_query();
            while let Some(row) = rows.next().unwrap() {
                let step: String = row.get(3).unwrap();
                let is_scan = step.starts_with("SCAN tasks") && !step.contains("USING");
                assert!(!is_scan, "{statement}: {step}");
            }
        }
    }
}
