//! Lists of tasks, newest status first. Each kind of filter has an index that yields a page without a scan or a sort.

use std::cmp::Reverse;

use engine::{
    ids::{Ids, TaskNo},
    store::{ListPage, ListPosition, ListQuery, Snapshot, TaskRow},
};
use protocol::{TaskState, Timestamp};
use rusqlite::{Connection, Row, named_params, params};

use super::readers::Failure;

use crate::sqlite::tables::rows::{self, select_tasks, task_row};

use super::snapshots;

/// A page of visible tasks. Damaged ones are left out and counted, so that the others can be read.
pub(crate) fn list(tx: &Connection, ids: &Ids, scope: i64, query: &ListQuery) -> Result<ListPage, Failure> {
    let context = match &query.context {
        None => None,
        Some(lookup) => match rows::context(tx, ids, scope, lookup)? {
            Some(context) => Some(context.first.0),
            None => return Ok(ListPage::default()),
        },
    };
    let total = count(tx, scope, context, query)?;
    if total == 0 {
        // Avoids a scan over tasks that do not match.
        return Ok(ListPage::default());
    }
    let (at, n) = query.after.map_or((i64::MAX, i64::MAX), |place| (place.status_at.as_millis(), place.no.0));
    let params = named_params! {
        ":scope": scope,
        ":context": context,
        ":state": query.state.map(TaskState::number),
        ":since": since(query),
        ":at": at,
        ":n": n,
        ":limit": i64::try_from(query.size + 1).unwrap_or(i64::MAX),
    };
    let rare = query.state.is_some_and(|state| state != TaskState::Completed);
    let statements: &[&str] = match (context, rare) {
        (Some(_), _) => &[PAGE_OF_CONTEXT, FIRST_OF_CONTEXT],
        (None, true) => &[PAGE_OF_RARE_STATE],
        (None, false) => &[PAGE_BY_TIME],
    };
    let mut rows = Vec::new();
    for statement in statements {
        let mut statement = tx.prepare_cached(statement)?;
        for row in statement.query_map(params, |row| Ok((position(row)?, task_row(ids, row))))? {
            rows.push(row?);
        }
    }
    rows.sort_by_key(|(position, _)| Reverse((position.status_at, position.no)));
    let (found, mut examined, mut bytes) = (rows.len(), 0, 0);
    let mut page = ListPage { total: total.unsigned_abs(), ..ListPage::default() };
    for (position, row) in rows.into_iter().take(query.size.max(1)) {
        // The size of a whole task is known before it is read.
        let size = row.as_ref().map_or(0, |row| row.size);
        if query.view.is_whole() && !page.tasks.is_empty() && bytes + size > MAX_PAGE_BYTES {
            break;
        }
        match read(tx, row, query) {
            Ok(task) => {
                bytes += task.bytes;
                if !page.tasks.is_empty() && bytes > MAX_PAGE_BYTES {
                    break;
                }
                page.tasks.push(task);
            }
            Err(failure) => {
                let what = failure.damage().ok_or(failure)?;
                tracing::error!(task = position.no.0, what, "a damaged task is left out of a list");
                page.unreadable += 1;
            }
        }
        (examined, page.last) = (examined + 1, Some(position));
    }
    page.more = found > examined;
    Ok(page)
}

fn read(tx: &Connection, row: rusqlite::Result<TaskRow>, query: &ListQuery) -> Result<Snapshot, Failure> {
    snapshots::read(tx, row?, &query.view)
}

/// The place of a row in the list, also if the rest of it is damaged. The columns are those of [`select_tasks`].
fn position(row: &Row<'_>) -> rusqlite::Result<ListPosition> {
    Ok(ListPosition { no: TaskNo(row.get(0)?), status_at: Timestamp::from_millis(row.get(7)?) })
}

/// Size limit of a page in bytes of task logs that are read: the page ends before the task that would exceed it, but
/// has at least one task.
const MAX_PAGE_BYTES: u64 = 16 << 20;

fn since(query: &ListQuery) -> i64 {
    query.since.map_or(i64::MIN, Timestamp::as_millis)
}

/// Number of tasks that the filter matches. Exact for a whole list and for a state of it; with a start time or a context
/// it is counted up to [`MAX_COUNTED`].
fn count(tx: &Connection, scope: i64, context: Option<i64>, query: &ListQuery) -> rusqlite::Result<i64> {
    let (state, since) = (query.state.map(TaskState::number), since(query));
    let count = |statement: &str, limit: i64| -> rusqlite::Result<i64> {
        let params = named_params! { ":scope": scope, ":since": since, ":limit": limit };
        tx.prepare_cached(statement)?.query_row(params, |row| row.get(0))
    };
    match (context, query.since, query.state) {
        // The writer keeps these counts.
        (None, None, _) => {
            tx.prepare_cached(COUNT_BY_STATE)?.query_row(params![scope, state], |row| row.get(0))
        }
        (None, Some(_), None) => count(COUNT_SINCE, MAX_COUNTED),
        (None, Some(_), Some(TaskState::Completed)) => match count(COUNT_UNCOMPLETED, MAX_COUNTED)? {
            MAX_COUNTED => count(COUNT_COMPLETED, MAX_COUNTED),
            // Subtracts the others from all: no index contains the states of all tasks, and reading every row would
            // cost four times as much.
            others => Ok(count(COUNT_SINCE, MAX_COUNTED + others)? - others),
        },
        (None, Some(_), Some(_)) => tx
            .prepare_cached(COUNT_RARE_STATE)?
            .query_row(params![scope, since, MAX_COUNTED, state], |row| row.get(0)),
        (Some(first), _, _) => {
            let first_matches =
                tx.prepare_cached(FIRST_OF_CONTEXT_MATCHES)?.exists(params![first, scope, since, state])?;
            let joined: i64 = tx
                .prepare_cached(COUNT_OF_CONTEXT)?
                .query_row(params![scope, since, MAX_COUNTED, state, first], |row| row.get(0))?;
            Ok((joined + i64::from(first_matches)).min(MAX_COUNTED))
        }
    }
}

/// The total of a longer list with a start time or a context is this number.
const MAX_COUNTED: i64 = 5_000;

const COUNT_SINCE: &str = "SELECT count(*) FROM (SELECT 1 FROM tasks INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND status_at >= :since LIMIT :limit)";

const COUNT_UNCOMPLETED: &str = "SELECT count(*) FROM (SELECT 1 FROM tasks INDEXED BY tasks_uncompleted
     WHERE scope = :scope AND visible = 1 AND state <> 3 AND state IN (1, 2, 4, 5, 6, 7, 8)
       AND status_at >= :since LIMIT :limit)";

const COUNT_COMPLETED: &str = "SELECT count(*) FROM (SELECT 1 FROM tasks INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND state = 3 AND status_at >= :since LIMIT :limit)";

const COUNT_RARE_STATE: &str = "SELECT count(*) FROM (SELECT 1 FROM tasks INDEXED BY tasks_uncompleted
     WHERE scope = ?1 AND visible = 1 AND state <> 3 AND state = ?4 AND status_at >= ?2 LIMIT ?3)";

const COUNT_OF_CONTEXT: &str = "SELECT count(*) FROM (SELECT 1 FROM tasks INDEXED BY tasks_context
     WHERE scope = ?1 AND context = ?5 AND context <> n AND visible = 1 AND status_at >= ?2
       AND (?4 IS NULL OR state = ?4) LIMIT ?3)";

const PAGE_BY_TIME: &str = select_tasks!(
    "INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND status_at >= :since AND (status_at, n) < (:at, :n)
       AND (:state IS NULL OR state = :state) AND :context IS NULL
     ORDER BY status_at DESC, n DESC LIMIT :limit"
);

/// Almost all tasks are completed; the others have a partial index, whose condition the query repeats so that SQLite
/// can use it.
const PAGE_OF_RARE_STATE: &str = select_tasks!(
    "INDEXED BY tasks_uncompleted
     WHERE scope = :scope AND visible = 1 AND state <> 3 AND state = :state
       AND status_at >= :since AND (status_at, n) < (:at, :n) AND :context IS NULL
     ORDER BY status_at DESC, n DESC LIMIT :limit"
);

/// The tasks that joined a context.
const PAGE_OF_CONTEXT: &str = select_tasks!(
    "INDEXED BY tasks_context
     WHERE scope = :scope AND context = :context AND context <> n AND visible = 1
       AND status_at >= :since AND (status_at, n) < (:at, :n) AND (:state IS NULL OR state = :state)
     ORDER BY status_at DESC, n DESC LIMIT :limit"
);

/// The first task of a context.
const FIRST_OF_CONTEXT: &str = select_tasks!(
    "WHERE n = :context AND scope = :scope AND visible = 1
       AND status_at >= :since AND (status_at, n) < (:at, :n) AND (:state IS NULL OR state = :state)
     LIMIT :limit"
);

const FIRST_OF_CONTEXT_MATCHES: &str =
    "SELECT 1 FROM tasks WHERE n = ?1 AND scope = ?2 AND visible = 1 AND status_at >= ?3
     AND (?4 IS NULL OR state = ?4)";

const COUNT_BY_STATE: &str =
    "SELECT coalesce(sum(n), 0) FROM counts WHERE scope = ?1 AND (?2 IS NULL OR state = ?2)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations;
    use crate::sqlite::reads::expiry;
    use crate::sqlite::tables::scopes;
    use crate::sqlite::tables::waiting;
    use crate::sqlite::tables::webhooks;
    use crate::sqlite::writes::changes;
    use crate::sqlite::writes::purge;

    /// The steps of a statement's plan.
    fn plan(connection: &Connection, statement: &str) -> Vec<String> {
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        // Unbound parameters are null, which does not change the plan.
        let mut rows = plan.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            steps.push(row.get::<_, String>(3).unwrap());
        }
        steps
    }

    #[test]
    fn every_page_query_uses_its_index() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrations::run(&mut connection).map_err(drop).unwrap();
        let cases = [
            (PAGE_BY_TIME, "tasks_listed"),
            (PAGE_OF_RARE_STATE, "tasks_uncompleted"),
            (PAGE_OF_CONTEXT, "tasks_context"),
        ];
        for (statement, index) in cases {
            let steps = plan(&connection, statement);
            assert!(steps.iter().any(|step| step.contains(index)), "{steps:?}");
            assert!(!steps.iter().any(|step| step.starts_with("SCAN tasks")), "{steps:?}");
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:?}");
        }
    }

    #[test]
    fn no_query_over_all_tasks_or_owners_scans_them() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrations::run(&mut connection).map_err(drop).unwrap();
        let cases = [
            (COUNT_SINCE, "tasks_listed"),
            (COUNT_UNCOMPLETED, "tasks_uncompleted"),
            (COUNT_COMPLETED, "tasks_listed"),
            (COUNT_RARE_STATE, "tasks_uncompleted"),
            (COUNT_OF_CONTEXT, "tasks_context"),
            (expiry::SCOPES, "scopes_ended"),
            (expiry::SCOPES_AHEAD, "scopes_ended"),
            (expiry::NEXT_AGENT, "scopes_ended"),
            (expiry::NEXT_TENANT, "scopes_ended"),
            (expiry::OLDEST_FINISHED, "tasks_listed"),
            (expiry::OLDEST_HIDDEN, "tasks_hidden"),
            (waiting::WAITING, "waiting_agent"),
            (waiting::NEXT_SKILL, "waiting_agent"),
            (rows::DUE, "tasks_due"),
            (rows::TOO_FAR_AHEAD, "tasks_due"),
            (rows::NEXT_DUE, "tasks_due"),
            (rows::OVERDUE, "tasks_deadline"),
            (rows::NEXT_OVERDUE, "tasks_deadline"),
            (webhooks::NEXT_HOST, "webhooks_due (host>?)"),
            (webhooks::FIRST_OF_HOST, "webhooks_due (host=? AND next_at>?)"),
            (webhooks::TOO_FAR_AHEAD, "webhooks_due (host=? AND next_at>?)"),
            (webhooks::TOO_OLD, "webhooks_due (host=? AND next_at>?)"),
            (rows::JOURNAL, "sqlite_autoindex_journal_1"),
            (changes::DELETE_STEPS_OF_TURNS, "sqlite_autoindex_journal_1 (n=? AND turn>?)"),
            (purge::JOURNAL_SIZES, "sqlite_autoindex_journal_1"),
            (purge::JOURNAL_OUTPUTS, "sqlite_autoindex_journal_1"),
            (purge::DELETE_STEPS, "sqlite_autoindex_journal_1 (n=? AND (turn,step)>(?,?))"),
            (scopes::HAS_TASKS, "tasks_purged_scope"),
            (changes::PURGED_BEFORE, "tasks_purged"),
        ];
        for (statement, index) in cases {
            let steps = plan(&connection, statement);
            assert!(steps.iter().any(|step| step.contains(index)), "{steps:?}");
            let scan = |step: &&String| {
                step.starts_with("SCAN") && !step.starts_with("SCAN CONSTANT") && !step.starts_with("SCAN (")
            };
            assert_eq!(steps.iter().find(scan), None, "{statement}: {steps:?}");
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{statement}: {steps:?}");
        }
        // One step over an ordered index.
        let first = plan(&connection, expiry::FIRST_AGENT);
        assert_eq!(first, ["SCAN scopes USING COVERING INDEX scopes_ended"]);
    }
}
