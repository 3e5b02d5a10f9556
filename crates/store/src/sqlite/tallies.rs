//! How many tasks a list has from a time on, without walking them all.
//!
//! A list is tallied once somebody has found it long to count: the writer counts it from its oldest status on, a
//! stretch at a time beside its other work, and keeps the numbers by state. Behind the last stretch the list is
//! walked, and the newest statuses are left there on purpose: a task that comes, goes or changes is counted anew
//! only where its status is older than that, so nearly every call pays nothing. A count is exact at any moment,
//! because a stretch is written in the transaction that sees it whole.

use std::collections::{HashMap, HashSet, VecDeque};

use protocol::TaskState;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};

/// How many tasks a stretch has.
const STRETCH: i64 = 2_048;
/// With fewer than so many behind the last stretch there is no further one; whoever has walked more asks for them.
const YOUNG: i64 = 2 * STRETCH;
const LONG_WALK: i64 = 3 * STRETCH;

/// What is counted together: all tasks of an owner, or those that joined one of its conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct List {
    scope: i64,
    /// Its first task, which has the conversation for itself at first and is not in this list; 0 for all tasks.
    context: i64,
}

impl List {
    pub(super) fn of_owner(scope: i64) -> Self {
        Self { scope, context: 0 }
    }

    pub(super) fn of_conversation(scope: i64, first: i64) -> Self {
        Self { scope, context: first }
    }
}

/// A task as lists show it.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    pub(super) scope: i64,
    /// The conversation it joined, if it is not the first of its own.
    pub(super) joined: Option<i64>,
    pub(super) state: TaskState,
    pub(super) status_at: i64,
}

/// What the writer knows of tallies.
#[derive(Default)]
pub(super) struct Tallies {
    /// Up to which time each list is tallied.
    upto: HashMap<List, i64>,
    /// The differences a commit makes, by list, time and state.
    differences: HashMap<(List, i64, u8), i64>,
    /// Lists that somebody found long.
    wanted: VecDeque<List>,
}

impl Tallies {
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare("SELECT scope, context, upto FROM tallied")?;
        let rows = statement
            .query_map([], |row| Ok((List { scope: row.get(0)?, context: row.get(1)? }, row.get(2)?)))?;
        Ok(Self { upto: rows.collect::<rusqlite::Result<_>>()?, ..Self::default() })
    }

    /// Whether tasks of some conversation are tallied.
    pub(super) fn know_conversations(&self) -> bool {
        self.upto.keys().any(|list| list.context != 0)
    }

    /// A task has come into its lists, or left them.
    pub(super) fn count(&mut self, task: &Listed, difference: i64) {
        if self.upto.is_empty() {
            return;
        }
        let conversation = task.joined.map(|first| List::of_conversation(task.scope, first));
        for list in [Some(List::of_owner(task.scope)), conversation].into_iter().flatten() {
            if self.upto.get(&list).is_some_and(|upto| task.status_at < *upto) {
                *self.differences.entry((list, task.status_at, task.state.number())).or_default() +=
                    difference;
            }
        }
    }

    /// Writes the differences.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut emptied = HashSet::new();
        for ((list, status_at, state), difference) in self.differences.drain().filter(|entry| entry.1 != 0) {
            let List { scope, context } = list;
            // What is older than the oldest stretch begins one of its own.
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
            debug_assert!(n >= 0, "a task that leaves a list was in it");
            if n == 0 {
                connection
                    .prepare_cached(
                        "DELETE FROM tallies WHERE scope = ?1 AND context = ?2 AND at = ?3 AND state = ?4",
                    )?
                    .execute(params![scope, context, at, state])?;
                emptied.insert(list);
            }
        }
        // Only now: what left a list may have been followed by what came.
        for list in emptied {
            self.forget_if_empty(connection, list)?;
        }
        Ok(())
    }

    fn forget_if_empty(&mut self, connection: &Connection, list: List) -> rusqlite::Result<()> {
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

    /// Somebody found a list long to count.
    pub(super) fn want(&mut self, list: List) {
        if !self.wanted.contains(&list) {
            self.wanted.push_back(list);
        }
    }

    /// Whether there is more to tally.
    pub(super) fn unfinished(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Tallies one more stretch of a list that is wanted; to be called inside each commit, behind its differences.
    pub(super) fn maintain(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(list) = self.wanted.front().copied() else { return Ok(()) };
        let upto = self.upto.get(&list).copied().unwrap_or(i64::MIN);
        match tally(connection, list, upto)? {
            Some(upto) => drop(self.upto.insert(list, upto)),
            None => drop(self.wanted.pop_front()),
        }
        Ok(())
    }
}

/// Tallies the stretch behind `upto`, if the list is long enough there. Gives the new end.
fn tally(connection: &Connection, list: List, upto: i64) -> rusqlite::Result<Option<i64>> {
    let List { scope, context } = list;
    let nth = |n: i64| -> rusqlite::Result<Option<i64>> {
        let mut statement =
            connection.prepare_cached(if context == 0 { NTH } else { NTH_OF_CONVERSATION })?;
        let params = named_params! { ":scope": scope, ":context": context, ":from": upto, ":n": n };
        statement.query_row(params, |row| row.get(0)).optional()
    };
    let (Some(first), Some(end), Some(_)) = (nth(0)?, nth(STRETCH)?, nth(YOUNG)?) else { return Ok(None) };
    // A stretch is never empty, however many statuses are of the same moment.
    let end = end.max(first + 1);
    connection
        .prepare_cached(if context == 0 { TALLY } else { TALLY_CONVERSATION })?
        .execute(named_params! { ":scope": scope, ":context": context, ":from": first, ":to": end })?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO tallied (scope, context, upto) VALUES (?1, ?2, ?3)")?
        .execute(params![scope, context, end])?;
    Ok(Some(end))
}

const NTH: &str = "SELECT status_at FROM tasks INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND status_at >= :from AND :context = 0
     ORDER BY status_at, n LIMIT 1 OFFSET :n";

const NTH_OF_CONVERSATION: &str = "SELECT status_at FROM tasks INDEXED BY tasks_context
     WHERE scope = :scope AND context = :context AND context <> n AND status_at >= :from AND visible = 1
     ORDER BY status_at, n LIMIT 1 OFFSET :n";

const TALLY: &str = "INSERT INTO tallies (scope, context, at, state, n)
     SELECT :scope, :context, :from, state, count(*) FROM tasks INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND status_at >= :from AND status_at < :to GROUP BY state";

const TALLY_CONVERSATION: &str = "INSERT INTO tallies (scope, context, at, state, n)
     SELECT :scope, :context, :from, state, count(*) FROM tasks INDEXED BY tasks_context
     WHERE scope = :scope AND context = :context AND context <> n AND visible = 1
       AND status_at >= :from AND status_at < :to GROUP BY state";

/// How many tasks of a list have this state, or any, since a time; and whether that was long to find out.
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
    let walk = |from: i64, to: i64| -> rusqlite::Result<Walk> {
        let statement = match (context, state) {
            (0, None) => WALK,
            (0, Some(TaskState::Completed)) => WALK_COMPLETED,
            (0, Some(_)) => WALK_RARE_STATE,
            _ => WALK_CONVERSATION,
        };
        let params = named_params! {
            ":scope": scope, ":context": context, ":state": number, ":from": from, ":to": to,
        };
        let read = |row: &Row<'_>| Ok(Walk { steps: row.get(0)?, found: row.get(1)? });
        tx.prepare_cached(statement)?.query_row(params, read)
    };
    let Some(upto) = upto else {
        let Walk { steps, found } = walk(since, i64::MAX)?;
        return Ok((found, steps > LONG_WALK));
    };
    let (whole, next): (i64, Option<i64>) = tx
        .prepare_cached(
            "SELECT coalesce(sum(iif(?3 IS NULL OR state = ?3, n, 0)), 0), min(at) FROM tallies
             WHERE scope = ?1 AND context = ?2 AND at >= ?4",
        )?
        .query_row(params![scope, context, number, since], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // The stretch that the time lies in, from there to its end.
    let end = next.unwrap_or(upto);
    let edge = if since > i64::MIN && since < end { walk(since, end)?.found } else { 0 };
    let young = walk(since.max(upto), i64::MAX)?;
    Ok((whole + edge + young.found, young.steps > LONG_WALK))
}

/// What came of walking a part of a list.
struct Walk {
    steps: i64,
    found: i64,
}

const WALK: &str = "SELECT count(*), count(*) FROM tasks INDEXED BY tasks_listed
     WHERE scope = :scope AND visible = 1 AND status_at >= :from AND status_at < :to
       AND :context = 0 AND :state IS NULL";

/// All but those that are not. No index has the states of all, and a look into every row would cost four times as much.
const WALK_COMPLETED: &str = "SELECT listed, listed - others FROM (SELECT
         (SELECT count(*) FROM tasks INDEXED BY tasks_listed
          WHERE scope = :scope AND visible = 1 AND status_at >= :from AND status_at < :to
            AND :context = 0) AS listed,
         (SELECT count(*) FROM tasks INDEXED BY tasks_uncompleted
          WHERE scope = :scope AND visible = 1 AND state <> 3 AND state IN (1, 2, 4, 5, 6, 7, 8)
            AND status_at >= :from AND status_at < :to) AS others)
     WHERE :state = 3";

const WALK_RARE_STATE: &str = "SELECT count(*), count(*) FROM tasks INDEXED BY tasks_uncompleted
     WHERE scope = :scope AND visible = 1 AND state <> 3 AND state = :state
       AND status_at >= :from AND status_at < :to AND :context = 0";

const WALK_CONVERSATION: &str = "SELECT count(*), coalesce(sum(:state IS NULL OR state = :state), 0)
     FROM tasks INDEXED BY tasks_context
     WHERE scope = :scope AND context = :context AND context <> n AND visible = 1
       AND status_at >= :from AND status_at < :to";

#[cfg(test)]
mod tests {
    use super::*;

    fn task(status_at: i64) -> Listed {
        Listed { scope: 1, joined: None, state: TaskState::Completed, status_at }
    }

    #[test]
    fn a_list_that_is_emptied_and_filled_in_one_commit_stays_tallied() {
        // In whichever order the differences are written.
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
