//! Reads task rows into the engine's types. Every query of a caller is restricted to the caller's scope.

use bytes::Bytes;
use engine::{
    Origin, Scope, ScopeParts,
    ids::{Ids, Tag, TaskNo},
    log::Seq,
    store::{
        ContextLookup, ContextRow, Due, DueTask, JournalStep, KeyUsed, Lookup, MAX_DUE_AHEAD, MessageKey,
        Overdue, SavedState, SkillSource, Snapshot, StepOwner, TaskRow, TaskWork, Visibility, WorkItem,
    },
};
use protocol::{ContextId, TaskId, TaskState, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};

use crate::sqlite::reads::readers::Failure;

use super::segments;

use crate::sqlite::reads::snapshots;

type ReadResult<T> = Result<T, Failure>;

/// Bits of a segment key for the sequence number; the rest is the task number. Limits the entries of one task.
const SEQ_BITS: u32 = 24;
/// The highest sequence number of a task.
pub(crate) const MAX_SEQ: Seq = (1 << SEQ_BITS) - 1;

/// Primary key of a segment (column `segment_key`): ordered by task, then by the segment's first entry.
pub(crate) fn segment_key(n: i64, first_seq: Seq) -> i64 {
    debug_assert!(first_seq <= MAX_SEQ, "the guards of each change prevent more entries");
    (n << SEQ_BITS) + i64::try_from(first_seq).unwrap_or_default()
}

/// The task and the first entry of a segment with this primary key.
pub(crate) fn split_segment_key(key: i64) -> (i64, Seq) {
    (key >> SEQ_BITS, key.unsigned_abs() & MAX_SEQ)
}

/// A query for task rows, with the columns in the order that [`task_row`] reads.
macro_rules! select_tasks {
    ($rest:literal) => {
        concat!(
            "SELECT n, tag, client_id, context, context_tag, context_name, state, status_at, last_seq, fence, ",
            "attempt, deaths, unanswered, visible, size, doc, tail, skill, origin, turn, crashes, probation, deadline, ",
            "progress_size, skill_source, admitted FROM tasks ",
            $rest
        )
    };
}

pub(crate) use select_tasks;

/// Finds a task by its public id: first as an id of this server, then as one chosen by the client.
pub(crate) fn find(tx: &Connection, ids: &Ids, scope: i64, lookup: &Lookup) -> ReadResult<Option<TaskRow>> {
    if let Some((no, tag)) = lookup.ours {
        let mut statement =
            tx.prepare_cached(select_tasks!("WHERE n = ?1 AND scope = ?2 AND tag = ?3 AND visible < 3"))?;
        let row = statement.query_row(params![no.0, scope, tag.0], |row| task_row(ids, row)).optional()?;
        if row.is_some() {
            return Ok(row);
        }
    }
    let mut statement = tx.prepare_cached(select_tasks!("WHERE scope = ?1 AND client_id = ?2"))?;
    let name = lookup.name.as_str();
    Ok(statement.query_row(params![scope, name], |row| task_row(ids, row)).optional()?)
}

/// A task's row, and how many segments follow its doc.
pub(crate) fn with_tail(tx: &Connection, ids: &Ids, task: TaskNo) -> ReadResult<Option<(TaskRow, i64)>> {
    let mut statement = tx.prepare_cached(select_tasks!("WHERE n = ?1 AND visible < 3"))?;
    Ok(statement.query_row(params![task.0], |row| Ok((task_row(ids, row)?, row.get(16)?))).optional()?)
}

/// Whether a task belongs to this scope.
pub(crate) fn owns(tx: &Connection, scope: i64, task: TaskNo) -> rusqlite::Result<bool> {
    tx.prepare_cached("SELECT 1 FROM tasks WHERE n = ?1 AND scope = ?2")?.exists(params![task.0, scope])
}

/// Whether a task belongs to this scope and has a log. Of a purged task, a part of the log may still exist.
pub(crate) fn owns_log(tx: &Connection, scope: i64, task: TaskNo) -> rusqlite::Result<bool> {
    tx.prepare_cached("SELECT 1 FROM tasks WHERE n = ?1 AND scope = ?2 AND visible < 3")?
        .exists(params![task.0, scope])
}

/// Where a follow-up message with this key was recorded.
pub(crate) fn turn_key(tx: &Connection, task: TaskNo, key: &MessageKey) -> rusqlite::Result<Option<KeyUsed>> {
    // A client-named task may receive its first message again as a follow-up, so that key counts too.
    tx.prepare_cached(
        "SELECT tag, turn_keys.hash, seq FROM turn_keys JOIN tasks USING (n) WHERE n = ?1 AND turn_keys.key = ?2
         UNION ALL SELECT tag, hash, 1 FROM tasks WHERE n = ?1 AND key = ?2 AND client_id IS NOT NULL",
    )?
    .query_row(params![task.0, key.key], |row| {
        let hash: [u8; 16] = row.get(1)?;
        let seq = Seq::try_from(row.get::<_, i64>(2)?).unwrap_or_default();
        Ok(KeyUsed { task, tag: Tag(row.get(0)?), seq, same: hash == key.hash })
    })
    .optional()
}

/// Where a follow-up message with this key was recorded in a context.
pub(crate) fn turn_key_in_context(
    tx: &Connection,
    ids: &Ids,
    scope: i64,
    lookup: &ContextLookup,
    key: &MessageKey,
) -> ReadResult<Option<KeyUsed>> {
    let Some(ContextRow { first, .. }) = context(tx, ids, scope, lookup)? else { return Ok(None) };
    let mut tasks = tx.prepare_cached(
        "SELECT n FROM turn_keys INDEXED BY turn_keys_by_key JOIN tasks USING (n)
         WHERE turn_keys.key = ?3 AND scope = ?1 AND context = ?2
         UNION SELECT n FROM tasks INDEXED BY tasks_named_key
         WHERE key IS NOT NULL AND client_id IS NOT NULL AND key = ?3 AND scope = ?1 AND context = ?2",
    )?;
    let tasks = tasks.query_map(params![scope, first.0, key.key], |row| row.get(0).map(TaskNo))?;
    for task in tasks {
        if let Some(used) = turn_key(tx, task?, key)? {
            return Ok(Some(used));
        }
    }
    Ok(None)
}

/// Finds a context by its public id: first as an id of this server, then as one chosen by the client.
pub(crate) fn context(
    tx: &Connection,
    ids: &Ids,
    scope: i64,
    lookup: &ContextLookup,
) -> ReadResult<Option<ContextRow>> {
    if let Some((first, tag)) = lookup.ours
        && owns_context(tx, ids, scope, first, tag)?
    {
        return Ok(Some(ContextRow { first, tag, name: None }));
    }
    let mut statement = tx.prepare_cached(
        "SELECT context FROM tasks WHERE scope = ?1 AND context_name = ?2 ORDER BY n LIMIT 1",
    )?;
    let first = statement.query_row(params![scope, lookup.name.as_str()], |row| row.get(0)).optional()?;
    let row = |first| ContextRow { first: TaskNo(first), tag: NO_TAG, name: Some(lookup.name.clone()) };
    Ok(first.map(row))
}

/// A client-named context is found by its name; its tag is never compared.
const NO_TAG: Tag = Tag([0; 10]);

/// Whether this scope has a context with this first task and tag, even if that task itself was deleted.
fn owns_context(tx: &Connection, ids: &Ids, scope: i64, first: TaskNo, tag: Tag) -> ReadResult<bool> {
    let mut begun = tx.prepare_cached(
        "SELECT tag FROM tasks WHERE n = ?1 AND scope = ?2 AND context = n AND context_name IS NULL",
    )?;
    let task_tag: Option<[u8; 10]> = begun.query_row(params![first.0, scope], |row| row.get(0)).optional()?;
    if task_tag.is_some_and(|task_tag| ids.context_tag(Tag(task_tag)) == tag) {
        return Ok(true);
    }
    let mut joined = tx.prepare_cached(
        "SELECT 1 FROM tasks WHERE scope = ?1 AND context = ?2 AND context <> n AND context_tag = ?3 LIMIT 1",
    )?;
    Ok(joined.exists(params![scope, first.0, tag.0])?)
}

/// The newest `max` tasks of a context before one of its tasks, oldest first, with the newest `max_bytes` of their
/// messages.
pub(crate) fn context_history(
    tx: &Connection,
    ids: &Ids,
    scope: i64,
    first: TaskNo,
    before: TaskNo,
    max: usize,
    max_bytes: usize,
) -> ReadResult<Vec<Snapshot>> {
    let mut statement = tx.prepare_cached(select_tasks!(
        "WHERE n IN (SELECT n FROM tasks WHERE scope = :scope AND context = :first AND context <> n
                     UNION ALL SELECT n FROM tasks WHERE n = :first AND scope = :scope)
           AND n < :before AND visible IN (1, 2)
         ORDER BY n DESC LIMIT :max"
    ))?;
    let rows = statement.query_map(
        named_params! {
            ":scope": scope,
            ":first": first.0,
            ":before": before.0,
            ":max": i64::try_from(max).unwrap_or(i64::MAX),
        },
        |row| task_row(ids, row),
    )?;
    let (mut tasks, mut bytes_left) = (Vec::new(), max_bytes);
    for row in rows {
        tasks.push(snapshots::history(tx, row?, &mut bytes_left)?);
        if bytes_left == 0 {
            break;
        }
    }
    tasks.reverse();
    Ok(tasks)
}

/// Unclaimed work that is due, and when the next will be. Work scheduled too far ahead comes
/// first: it has waited since before the clock was corrected.
pub(crate) fn due(tx: &Connection, now: Timestamp, max: usize) -> ReadResult<Due> {
    let now = now.as_millis();
    let horizon = now.saturating_add(i64::try_from(MAX_DUE_AHEAD.as_millis()).unwrap_or(i64::MAX));
    let limit = |max: usize| i64::try_from(max).unwrap_or(i64::MAX);
    let mut due = Due::default();
    for (statement, bound) in [(TOO_FAR_AHEAD, horizon), (DUE, now)] {
        let mut statement = tx.prepare_cached(statement)?;
        for task in statement.query_map(params![bound, limit(max - due.tasks.len())], due_task)? {
            due.tasks.push(task?);
        }
    }
    let next: Option<i64> =
        tx.prepare_cached(NEXT_DUE)?.query_row(params![now, horizon], |row| row.get(0))?;
    due.next = next.map(Timestamp::from_millis);
    Ok(due)
}

/// Unclaimed tasks whose deadline has passed, and the next deadline.
pub(crate) fn overdue(tx: &Connection, ids: &Ids, now: Timestamp, max: usize) -> ReadResult<Overdue> {
    let (now, max) = (now.as_millis(), i64::try_from(max).unwrap_or(i64::MAX));
    let mut tasks = tx.prepare_cached(OVERDUE)?;
    let tasks = tasks.query_map(params![now, max], |row| task_row(ids, row))?;
    let tasks = tasks.collect::<rusqlite::Result<_>>()?;
    let next: Option<i64> =
        tx.prepare_cached(NEXT_OVERDUE)?.query_row(params![now], |row| row.get(0)).optional()?;
    Ok(Overdue { tasks, next: next.map(Timestamp::from_millis) })
}

fn due_task(row: &Row<'_>) -> rusqlite::Result<DueTask> {
    let (deaths, skill): (i64, Option<String>) = (row.get(2)?, row.get(7)?);
    Ok(DueTask {
        no: TaskNo(row.get(0)?),
        at: Timestamp::from_millis(row.get(1)?),
        suspect: deaths >= 2,
        scope: Scope::new(ScopeParts {
            tenant: row.get(3)?,
            principal: row.get(4)?,
            agent: row.get(5)?,
            end_user: row.get(6)?,
        }),
        unselected: skill.is_none() && deaths == 0,
        skill,
    })
}

pub(crate) const DUE: &str = "SELECT n, next_run_at, deaths, tenant, principal, agent, end_user, skill
     FROM tasks INDEXED BY tasks_due CROSS JOIN scopes ON scopes.id = tasks.scope
     WHERE next_run_at IS NOT NULL AND next_run_at <= ?1 ORDER BY next_run_at, n LIMIT ?2";

pub(crate) const TOO_FAR_AHEAD: &str =
    "SELECT n, next_run_at, deaths, tenant, principal, agent, end_user, skill
     FROM tasks INDEXED BY tasks_due CROSS JOIN scopes ON scopes.id = tasks.scope
     WHERE next_run_at IS NOT NULL AND next_run_at > ?1 ORDER BY next_run_at, n LIMIT ?2";

pub(crate) const NEXT_DUE: &str = "SELECT min(next_run_at) FROM tasks INDEXED BY tasks_due
     WHERE next_run_at IS NOT NULL AND next_run_at > ?1 AND next_run_at <= ?2";

/// State and queued work of a visible task of any scope.
pub(crate) fn task_work(tx: &Connection, task: TaskNo, tag: Tag) -> ReadResult<Option<TaskWork>> {
    let mut statement = tx.prepare_cached(TASK_WORK)?;
    let work = statement.query_row(params![task.0, tag.0], |row| {
        let state = TaskState::from_number(row.get(8)?);
        let state = state.ok_or_else(|| rusqlite::Error::IntegralValueOutOfRange(8, -1))?;
        let is_queued = row.get::<_, Option<i64>>(1)?.is_some();
        Ok(TaskWork { state, queued: if is_queued { Some(due_task(row)?) } else { None } })
    });
    Ok(work.optional()?)
}

pub(crate) const TASK_WORK: &str =
    "SELECT n, next_run_at, deaths, tenant, principal, agent, end_user, skill, state
     FROM tasks JOIN scopes ON scopes.id = tasks.scope WHERE n = ?1 AND tag = ?2 AND visible = 1";

/// A process that holds a task ends it itself at its deadline.
pub(crate) const OVERDUE: &str = select_tasks!(
    "INDEXED BY tasks_deadline
     WHERE deadline IS NOT NULL AND state IN (1, 2, 6, 8) AND deadline <= ?1 AND boot = 0 AND visible < 3
     ORDER BY deadline LIMIT ?2"
);

pub(crate) const NEXT_OVERDUE: &str = "SELECT deadline FROM tasks INDEXED BY tasks_deadline
     WHERE deadline IS NOT NULL AND state IN (1, 2, 6, 8) AND deadline > ?1 ORDER BY deadline LIMIT 1";

/// A task with what a runner needs to run it, and the first slice of its log.
pub(crate) fn work_item(tx: &Connection, ids: &Ids, task: TaskNo) -> ReadResult<Option<WorkItem>> {
    let mut statement = tx.prepare_cached(select_tasks!("WHERE n = ?1"))?;
    let row = statement.query_row(params![task.0], |row| task_row(ids, row)).optional()?;
    let Some(row) = row else { return Ok(None) };
    let scope = tx
        .prepare_cached(
            "SELECT tenant, principal, agent, end_user FROM scopes JOIN tasks ON scopes.id = tasks.scope WHERE n = ?1",
        )?
        .query_row(params![task.0], |row| {
            Ok(Scope::new(ScopeParts {
                tenant: row.get(0)?,
                principal: row.get(1)?,
                agent: row.get(2)?,
                end_user: row.get(3)?,
            }))
        })?;
    let saved = tx
        .prepare_cached("SELECT skill, bytes FROM saved WHERE n = ?1")?
        .query_row(params![task.0], |row| {
            Ok(SavedState { skill: row.get(0)?, state: row.get::<_, Vec<u8>>(1)?.into() })
        })
        .optional()?;
    let mut journal = tx.prepare_cached(JOURNAL)?;
    let journal = journal.query_map(params![task.0], |row| {
        let output: Option<Vec<u8>> = row.get(2)?;
        let owner = StepOwner::from_number(Seq::try_from(row.get::<_, i64>(0)?).unwrap_or_default());
        Ok(JournalStep { owner, id: row.get(1)?, output: output.map(Bytes::from) })
    })?;
    let journal = journal.collect::<rusqlite::Result<_>>()?;
    let log = segments::slice(tx, task, 0, usize::MAX)?;
    Ok(Some(WorkItem { row, scope, saved, journal, log }))
}

pub(crate) const JOURNAL: &str = "SELECT turn, step, output FROM journal WHERE n = ?1";

pub(crate) fn task_row(ids: &Ids, row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    let no = TaskNo(row.get(0)?);
    let tag = Tag(row.get(1)?);
    let first = TaskNo(row.get(3)?);
    let joined: Option<[u8; 10]> = row.get(4)?;
    let context_tag = if first == no { ids.context_tag(tag) } else { joined.map_or(NO_TAG, Tag) };
    let unknown = |column: usize| rusqlite::Error::IntegralValueOutOfRange(column, -1);
    Ok(TaskRow {
        no,
        tag,
        client_id: row.get::<_, Option<String>>(2)?.map(TaskId::from),
        skill: row.get(17)?,
        skill_source: match row.get(24)? {
            None => None,
            Some(number) => Some(SkillSource::from_number(number).ok_or_else(|| unknown(24))?),
        },
        admitted: row.get(25)?,
        origin: Origin::from_number(row.get(18)?).ok_or_else(|| unknown(18))?,
        context: ContextRow {
            first,
            tag: context_tag,
            name: row.get::<_, Option<String>>(5)?.map(ContextId::from),
        },
        state: TaskState::from_number(row.get(6)?).ok_or_else(|| unknown(6))?,
        status_at: Timestamp::from_millis(row.get(7)?),
        turn: row.get(19)?,
        last_seq: Seq::try_from(row.get::<_, i64>(8)?).map_err(|_| unknown(8))?,
        fence: row.get(9)?,
        attempt: row.get(10)?,
        deaths: row.get(11)?,
        crashes: row.get(20)?,
        died_on_probation: row.get::<_, i64>(21)? == 2,
        deadline: row.get::<_, Option<i64>>(22)?.map(Timestamp::from_millis),
        unanswered: row.get(12)?,
        visibility: Visibility::from_number(row.get(13)?).ok_or_else(|| unknown(13))?,
        size: row.get::<_, i64>(14)?.unsigned_abs(),
        progress_size: row.get::<_, i64>(23)?.unsigned_abs(),
        doc: Seq::try_from(row.get::<_, i64>(15)?).map_err(|_| unknown(15))?,
    })
}
