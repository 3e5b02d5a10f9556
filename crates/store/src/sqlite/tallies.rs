//! Counts the tasks of a long list since a time, without scanning all of them.
//!
//! A list is tallied once a reader has found it long to count: the writer counts it from its oldest status on, one
//! time bucket per commit, and stores the counts by state. Tasks after the last bucket are counted by an index scan.
//! The newest statuses are deliberately in no bucket: a task that is added, removed or changed updates a bucket only
//! if its status is that old, so nearly every call costs nothing. Invariant: a count is exact at any time, because a
//! bucket is written in the transaction that counts it.

use std::collections::{HashMap, HashSet, VecDeque};

use protocol::TaskState;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};

/// Tasks in a bucket.
const BUCKET_TASKS: i64 = 2_048;
/// A bucket is added only while more than this many tasks follow the last one; a reader that has scanned more than
/// `LONG_SCAN` requests buckets.
const MIN_RECENT: i64 = 2 * BUCKET_TASKS;
const LONG_SCAN: i64 = 3 * BUCKET_TASKS;

/// Tasks counted together: all tasks of a scope, or those that joined one of its contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct List {
    scope: i64,
    /// The first task of the context, which itself is not in this list; 0 for all tasks of the scope.
    context: i64,
}

impl List {
    pub(super) fn of_scope(scope: i64) -> Self {
        Self { scope, context: 0 }
    }

    pub(super) fn of_context(scope: i64, first: i64) -> Self {
        Self { scope, context: first }
    }
}

/// The columns of a task that lists filter and sort by.
#[derive(Clone, Copy)]
pub(super) struct ListedTask {
    pub(super) scope: i64,
    /// The context it joined; `None` if it is the first task of its context.
    pub(super) joined: Option<i64>,
    pub(super) state: TaskState,
    pub(super) status_at: i64,
}

/// The writer's in-memory state of the tallies.
#[derive(Default)]
pub(super) struct Tallies {
    /// End of the last bucket of each tallied list.
    upto: HashMap<List, i64>,
    /// Differences that the current commit makes, by list, time and state.
    differences: HashMap<(List, i64, u8), i64>,
    /// Lists that readers found long, to be tallied further.
    requested: VecDeque<List>,
}

impl Tallies {
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare("SELECT scope, context, upto FROM tallied")?;
        let rows = statement
            .query_map([], |row| Ok((List { scope: row.get(0)?, context: row.get(1)? }, row.get(2)?)))?;
        Ok(Self { upto: rows.collect::<rusqlite::Result<_>>()?, ..Self::default() })
    }

    /// Whether any context has buckets.
    pub(super) fn has_contexts(&self) -> bool {
        self.upto.keys().any(|list| list.context != 0)
    }

    /// Counts a task that enters its lists (1) or leaves them (-1).
    pub(super) fn count(&mut self, task: &ListedTask, difference: i64) {
        if self.upto.is_empty() {
            return;
        }
        let context = task.joined.map(|first| List::of_context(task.scope, first));
        for list in [Some(List::of_scope(task.scope)), context].into_iter().flatten() {
            if self.upto.get(&list).is_some_and(|upto| task.status_at < *upto) {
                *self.differences.entry((list, task.status_at, task.state.number())).or_default() +=
                    difference;
            }
        }
    }

    /// Writes the differences to the buckets.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut emptied = HashSet::new();
        for ((list, status_at, state), difference) in self.differences.drain().filter(|entry| entry.1 != 0) {
            let List { scope, context } = list;
            // A status older than the oldest bucket gets a new bucket.
            let (at, n): (i64, i64) = connection
                .prepare_cached(
                    "INSERT INTO tallies (scope, context, at, state, n)
                     VALUES (?1, ?2, coalesce((SELECT max(at) FROM tallies
                                               WHERE scope = ?1 AND context = ?2 AND at <= ?3), ?3), ?4, ?5)
                     ON CONFLICT DO UPDATE SET n = n + excluded.n RETURNING at, n",
                )?
                .query_row(params![scope, context, status_at, state, difference], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            debug_assert!(n >= 0, "a task that leaves a list was counted in it");
            if n == 0 {
                connection
                    .prepare_cached(
                        "DELETE FROM tallies WHERE scope = ?1 AND context = ?2 AND at = ?3 AND state = ?4",
                    )?
                    .execute(params![scope, context, at, state])?;
                emptied.insert(list);
            }
        }
        // Only after all differences: a list that tasks have left may have gained others in the same commit.
        for list in emptied {
            self.drop_if_empty(connection, list)?;
        }
        Ok(())
    }

    fn drop_if_empty(&mut self, connection: &Connection, list: List) -> rusqlite::Result<()> {
        let List { scope, context } = list;
        let tallied = connection
            .prepare_cached("SELECT 1 FROM tallies WHERE scope = ?1 AND context = ?2 LIMIT 1")?
            .exists(params![scope, context])?;
        if !tallied {
            connection
                .prepare_cached("DELETE FROM tallied WHERE scope = ?1 AND context = ?2")?
                .execute(params![scope, context])?;
            self.upto.remove(&list);
        }
        Ok(())
    }

    /// Requests buckets for a list that was long to count.
    pub(super) fn request(&mut self, list: List) {
        if !self.requested.contains(&list) {
            self.requested.push_back(list);
        }
    }

    /// Whether there are lists to tally further.
    pub(super) fn has_requests(&self) -> bool {
        !self.requested.is_empty()
    }

    /// Tallies one more bucket of a requested list. Called in each commit, after [`Self::flush`].
    pub(super) fn maintain(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(list) = self.requested.front().copied() else { return Ok(()) };
        let upto = self.upto.get(&list).copied().unwrap_or(i64::MIN);
        match tally(connection, list, upto)? {
            Some(upto) => drop(self.upto.insert(list, upto)),
            None => drop(self.requested.pop_front()),
        }
        Ok(())
    }
}

/// Tallies the bucket after `upto`, if enough tasks follow it. Returns the new end.
fn tally(connection: &Connection, list: List, upto: i64) -> rusqlite::Result<Option<i64>> {
    let List { scope, context } = list;
    let nth = |n: i64| -> rusqlite::Result<Option<i64>> {
        let mut statement = connection.prepare_cached(if context == 0 { NTH } else { NTH_OF_CONTEXT })?;
        let params = named_params! { ":scope": scope, ":context": context, ":from": upto, ":n": n };
        statement.query_row(params, |row| row.get(0)).optional()
    };
    let (Some(first), Some(end), Some(_)) = (nth(0)?, nth(BUCKET_TASKS)?, nth(MIN_RECENT)?) else {
        return Ok(None);
    };
    // A bucket is never empty, even if many statuses have the same timestamp.
    let end = end.max(first + 1);
    connection
        .prepare_cached(if context == 0 { TALLY } else { TALLY_CONTEXT })?
        .execute(named_params! { ":scope": scope, ":context": context, ":from": first, ":to": end })?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO tallied (scope, context, upto) VALUES (?1, ?2, ?3)")?
        .execute(params![scope, context, end])?;
    Ok(Some(end))
}

const NTH: &str = "SELECT status_at FROM tasks INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND status_at >= :from AND :context = 0
     ORDER BY status_at, n LIMIT 1 OFFSET :n";

const NTH_OF_CONTEXT: &str = "SELECT status_at FROM tasks INDEXED BY tasks_context
     WHERE scope = :scope AND context = :context AND context <> n AND status_at >= :from AND visible = 1
     ORDER BY status_at, n LIMIT 1 OFFSET :n";

const TALLY: &str = "INSERT INTO tallies (scope, context, at, state, n)
     SELECT :scope, :context, :from, state, count(*) FROM tasks INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND status_at >= :from AND status_at < :to GROUP BY state";

const TALLY_CONTEXT: &str = "INSERT INTO tallies (scope, context, at, state, n)
     SELECT :scope, :context, :from, state, count(*) FROM tasks INDEXED BY tasks_context
     WHERE scope = :scope AND context = :context AND context <> n AND visible = 1
       AND status_at >= :from AND status_at < :to GROUP BY state";

/// Number of tasks of a list with this state, or any, since a time; and whether finding it took long.
pub(super) fn count(
    tx: &Connection,
    list: List,
    state: Option<TaskState>,
    since: i64,
) -> rusqlite::Result<(i64, bool)> {
    let List { scope, context } = list;
    let number = state.map(TaskState::number);
    let upto: Option<i64> = tx
        .prepare_cached("SELECT upto FROM tallied WHERE scope = ?1 AND context = ?2")?
        .query_row(params![scope, context], |row| row.get(0))
        .optional()?;
    let scan = |from: i64, to: i64| -> rusqlite::Result<Scan> {
        let statement = match (context, state) {
            (0, None) => SCAN,
            (0, Some(TaskState::Completed)) => SCAN_COMPLETED,
            (0, Some(_)) => SCAN_RARE_STATE,
            _ => SCAN_CONTEXT,
        };
        let params = named_params! {
            ":scope": scope, ":context": context, ":state": number, ":from": from, ":to": to,
        };
        let read = |row: &Row<'_>| Ok(Scan { scanned: row.get(0)?, found: row.get(1)? });
        tx.prepare_cached(statement)?.query_row(params, read)
    };
    let Some(upto) = upto else {
        let Scan { scanned, found } = scan(since, i64::MAX)?;
        return Ok((found, scanned > LONG_SCAN));
    };
    let (whole, next): (i64, Option<i64>) = tx
        .prepare_cached(
            "SELECT coalesce(sum(iif(?3 IS NULL OR state = ?3, n, 0)), 0), min(at) FROM tallies
             WHERE scope = ?1 AND context = ?2 AND at >= ?4",
        )?
        .query_row(params![scope, context, number, since], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // The part of the bucket that contains `since`, from there to the bucket's end.
    let end = next.unwrap_or(upto);
    let edge = if since > i64::MIN && since < end { scan(since, end)?.found } else { 0 };
    let recent = scan(since.max(upto), i64::MAX)?;
    Ok((whole + edge + recent.found, recent.scanned > LONG_SCAN))
}

/// Result of scanning a part of a list.
struct Scan {
    scanned: i64,
    found: i64,
}

const SCAN: &str = "SELECT count(*), count(*) FROM tasks INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND status_at >= :from AND status_at < :to
       AND :context = 0 AND :state IS NULL";

/// Subtracts the uncompleted tasks from all. No index contains the states of all tasks, and reading every row would
/// cost four times as much.
const SCAN_COMPLETED: &str = "SELECT listed, listed - others FROM (SELECT
         (SELECT count(*) FROM tasks INDEXED BY tasks_listed
          WHERE scope = :scope AND visible = 1 AND status_at >= :from AND status_at < :to
            AND :context = 0) AS listed,
         (SELECT count(*) FROM tasks INDEXED BY tasks_uncompleted
          WHERE scope = :scope AND visible = 1 AND state <> 3 AND state IN (1, 2, 4, 5, 6, 7, 8)
            AND status_at >= :from AND status_at < :to) AS others)
     WHERE :state = 3";

const SCAN_RARE_STATE: &str = "SELECT count(*), count(*) FROM tasks INDEXED BY tasks_uncompleted
     WHERE scope = :scope AND visible = 1 AND state <> 3 AND state = :state
       AND status_at >= :from AND status_at < :to AND :context = 0";

const SCAN_CONTEXT: &str = "SELECT count(*), coalesce(sum(:state IS NULL OR state = :state), 0)
     FROM tasks INDEXED BY tasks_context
     WHERE scope = :scope AND context = :context AND context <> n AND visible = 1
       AND status_at >= :from AND status_at < :to";

#[cfg(test)]
mod tests {
    use super::*;

    fn task(status_at: i64) -> ListedTask {
        ListedTask { scope: 1, joined: None, state: TaskState::Completed, status_at }
    }

    #[test]
    fn list_emptied_and_filled_in_one_commit_stays_tallied() {
        // The order of the differences in the hash map is random, so try several times.
        for _ in 0..32 {
            let connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(include_str!("migrations/0001_tasks.sql")).unwrap();
            connection.execute_batch(include_str!("migrations/0002_lists.sql")).unwrap();
            connection
                .execute_batch(
                    "PRAGMA foreign_keys = OFF; INSERT INTO tallied VALUES (1, 0, 1000);
                     INSERT INTO tallies VALUES (1, 0, 110, 3, 1)",
                )
                .unwrap();
            let mut tallies = Tallies::load(&connection).unwrap();
            tallies.count(&task(110), -1);
            tallies.count(&task(115), 1);
            tallies.flush(&connection).unwrap();
            let counted: (i64, i64) = connection
                .query_row("SELECT (SELECT count(*) FROM tallied), sum(n) FROM tallies", [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .unwrap();
            assert_eq!((counted, tallies.upto.len()), ((1, 1), 1));
        }
    }
}
