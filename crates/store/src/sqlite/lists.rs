//! Lists of tasks, newest status first. Each kind of filter has the index that makes its pages short to find.

use engine::{
    ids::Ids,
    store::{ListPage, ListQuery},
};
use protocol::{TaskState, Timestamp};
use rusqlite::{Connection, named_params};

use super::{
    readers::Failure,
    rows::{self, select_tasks, task_row},
};

/// A page of visible tasks.
pub(super) fn list(tx: &Connection, ids: &Ids, scope: i64, query: &ListQuery) -> Result<ListPage, Failure> {
    let context = match &query.context {
        None => None,
        Some(lookup) => match rows::context(tx, ids, scope, lookup)? {
            Some(context) => Some(context.first.0),
            None => return Ok(ListPage::default()),
        },
    };
    let filter = named_params! {
        ":scope": scope,
        ":context": context,
        ":state": query.state.map(TaskState::number),
        ":since": query.since.map_or(i64::MIN, Timestamp::as_millis),
    };
    let statements = Statements::for_query(query);
    let total: i64 = tx.prepare_cached(statements.count)?.query_row(filter, |row| row.get(0))?;
    let (at, n) = query.after.map_or((i64::MAX, i64::MAX), |place| (place.status_at.as_millis(), place.no.0));
    let limit = i64::try_from(query.size + 1).unwrap_or(i64::MAX);
    let page = named_params! { ":at": at, ":n": n, ":limit": limit };
    let params: Vec<(&str, &dyn rusqlite::ToSql)> = filter.iter().chain(page).copied().collect();
    let mut statement = tx.prepare_cached(statements.page)?;
    let rows = statement.query_map(params.as_slice(), |row| task_row(ids, row))?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let more = rows.len() > query.size;
    rows.truncate(query.size);
    let tasks = rows.into_iter().map(|row| rows::with_log(tx, row)).collect::<Result<Vec<_>, _>>()?;
    Ok(ListPage { tasks, total: total.unsigned_abs(), more })
}

/// How a kind of filter is paged and counted. All take the same parameters, used or not.
struct Statements {
    page: &'static str,
    count: &'static str,
}

impl Statements {
    fn for_query(query: &ListQuery) -> Self {
        let rare = query.state.is_some_and(|state| state != TaskState::Completed);
        let page = match (&query.context, rare) {
            (Some(_), _) => PAGE_OF_CONTEXT,
            (None, true) => PAGE_OF_RARE_STATE,
            (None, false) => PAGE,
        };
        let count = match (&query.context, query.since) {
            (Some(_), _) => COUNT_OF_CONTEXT,
            (None, Some(_)) => COUNT_SINCE,
            (None, None) => COUNTED,
        };
        Self { page, count }
    }
}

const PAGE: &str = select_tasks!(
    "INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND status_at >= :since AND (status_at, n) < (:at, :n)
       AND (:state IS NULL OR state = :state) AND :context IS NULL
     ORDER BY status_at DESC, n DESC LIMIT :limit"
);

/// Almost all tasks are completed; those that are not have an index of their own, whose condition is said again.
const PAGE_OF_RARE_STATE: &str = select_tasks!(
    "INDEXED BY tasks_uncompleted
     WHERE scope = :scope AND visible = 1 AND state <> 3 AND state = :state
       AND status_at >= :since AND (status_at, n) < (:at, :n) AND :context IS NULL
     ORDER BY status_at DESC, n DESC LIMIT :limit"
);

const PAGE_OF_CONTEXT: &str = select_tasks!(
    "WHERE n IN (SELECT n FROM tasks WHERE scope = :scope AND context = :context AND context <> n
                 UNION ALL SELECT :context)
       AND scope = :scope AND visible = 1 AND status_at >= :since AND (status_at, n) < (:at, :n)
       AND (:state IS NULL OR state = :state)
     ORDER BY status_at DESC, n DESC LIMIT :limit"
);

/// By state alone the writer has counted them.
const COUNTED: &str = "SELECT coalesce(sum(n), 0) FROM counts
     WHERE scope = :scope AND (:state IS NULL OR state = :state) AND :context IS NULL AND :since IS NOT NULL";

const COUNT_SINCE: &str = "SELECT count(*) FROM tasks
     WHERE scope = :scope AND visible = 1 AND status_at >= :since AND (:state IS NULL OR state = :state)
       AND :context IS NULL";

const COUNT_OF_CONTEXT: &str = "SELECT count(*) FROM tasks
     WHERE n IN (SELECT n FROM tasks WHERE scope = :scope AND context = :context AND context <> n
                 UNION ALL SELECT :context)
       AND scope = :scope AND visible = 1 AND status_at >= :since AND (:state IS NULL OR state = :state)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_found_by_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("migrations/0001_tasks.sql")).unwrap();
        let cases = [
            (PAGE, "tasks_listed"),
            (PAGE_OF_RARE_STATE, "tasks_uncompleted"),
            (PAGE_OF_CONTEXT, "tasks_context"),
            (COUNT_SINCE, "tasks_listed"),
            (COUNT_OF_CONTEXT, "tasks_context"),
        ];
        for (statement, index) in cases {
            let plan = format!("EXPLAIN QUERY PLAN {statement}");
            let mut plan = connection.prepare(&plan).unwrap();
            // Parameters that are not bound are null, which the plan does not depend on.
            let mut rows = plan.raw_query();
            let mut steps = Vec::new();
            while let Some(row) = rows.next().unwrap() {
                steps.push(row.get::<_, String>(3).unwrap());
            }
            assert!(steps.iter().any(|step| step.contains(index)), "{steps:?}");
            assert!(!steps.iter().any(|step| step.starts_with("SCAN tasks")), "{steps:?}");
        }
    }
}
