//! Changes as SQL. The first statement of each is its guard.

use engine::{
    log::{Log, Seq},
    store::{
        Accept, Advance, Change, Committed, Conflict, Counter, Effects, NewContext, NotCommitted, Step, Work,
    },
};
use protocol::TaskState;
use rusqlite::{Connection, OptionalExtension as _, named_params, params};

use super::{rows, scopes::Scopes};

/// Applies a change inside the writer's transaction. A refusal is a result; an error is the end of the writer.
pub(super) fn apply(
    connection: &Connection,
    boot: i64,
    scopes: &Scopes,
    change: &Change,
) -> rusqlite::Result<Result<Committed, NotCommitted>> {
    match change {
        Change::Accept(accept) => accept_new(connection, boot, scopes, accept),
        Change::Advance(advance) => advance_if_allowed(connection, boot, advance),
    }
}

/// About how many bytes a change writes.
pub(super) fn size(change: &Change) -> usize {
    let log = match change {
        Change::Accept(accept) => &accept.log,
        Change::Advance(advance) => &advance.log,
    };
    log.segment().len() + 256
}

fn accept_new(
    connection: &Connection,
    boot: i64,
    scopes: &Scopes,
    accept: &Accept,
) -> rusqlite::Result<Result<Committed, NotCommitted>> {
    let scope = scopes.intern(connection, &accept.scope)?;
    let (holder, next_run_at) = columns(accept.work, boot);
    // A turn that ran, even one that is over already, has had its first attempt.
    let ran = i64::from(!matches!(accept.work, Work::Due(_)));
    let (joined, tag, name) = match &accept.context {
        NewContext::Own => (None, None, None),
        NewContext::Named(name) => (None, None, Some(name.as_str())),
        NewContext::Joined(row) => {
            (Some(row.first.0), Some(row.tag.0.as_slice()), row.name.as_ref().map(|name| name.as_str()))
        }
    };
    let terminal_at = accept.state.is_terminal().then(|| accept.status_at.as_millis());
    // By position: names would be looked up for every row, and this is the row every call writes.
    let inserted = connection
        .prepare_cached(
            "INSERT INTO tasks (n, tag, scope, context, context_tag, context_name, state, status_at, last_seq,
                                fence, attempt, boot, next_run_at, terminal_at, visible)
             VALUES (?1, ?2, ?3,
                     coalesce(?4, (SELECT context FROM tasks WHERE scope = ?3 AND context_name = ?6 LIMIT 1), ?1),
                     ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13, ?14)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            accept.no.0,
            accept.tag.0,
            scope,
            joined,
            tag,
            name,
            accept.state.number(),
            accept.status_at.as_millis(),
            number(accept.log.len()),
            ran,
            holder,
            next_run_at,
            terminal_at,
            accept.visibility.number(),
        ])?;
    if inserted == 0 {
        return refused(connection, accept.no.0);
    }
    append(connection, accept.no.0, accept.log.len(), ran, &accept.log)?;
    save(connection, accept.no.0, ran, accept.saved.as_deref())?;
    Ok(Ok(Committed { last_seq: accept.log.len(), fence: ran, attempt: ran }))
}

fn advance_if_allowed(
    connection: &Connection,
    boot: i64,
    advance: &Advance,
) -> rusqlite::Result<Result<Committed, NotCommitted>> {
    let effects = advance.step.effects();
    let says_only = advance.status.is_none() && advance.visibility.is_none();
    let updated = match advance.step {
        Step::Report { .. } if says_only => append_row(connection, advance, &effects)?,
        _ => move_row(connection, boot, advance, &effects)?,
    };
    let Some((last_seq, fence, attempt)) = updated else { return refused(connection, advance.no.0) };
    let last_seq = Seq::try_from(last_seq).unwrap_or_default();
    append(connection, advance.no.0, last_seq, fence, &advance.log)?;
    save(connection, advance.no.0, attempt, advance.saved.as_deref())?;
    Ok(Ok(Committed { last_seq, fence, attempt }))
}

type Updated = Option<(i64, i64, i64)>;

/// More of the log and nothing else: no column that an index knows is touched.
fn append_row(connection: &Connection, advance: &Advance, effects: &Effects) -> rusqlite::Result<Updated> {
    connection
        .prepare_cached(
            "UPDATE tasks SET last_seq = last_seq + :entries
             WHERE n = :n AND (:states >> state) & 1 AND (:fence IS NULL OR fence = :fence)
               AND unanswered <= :max_unanswered AND (NOT :due OR next_run_at IS NOT NULL)
             RETURNING last_seq, fence, attempt",
        )?
        .query_row(
            named_params! {
                ":n": advance.no.0,
                ":entries": number(advance.log.len()),
                ":states": effects.from.0,
                ":fence": effects.fence,
                ":max_unanswered": effects.max_unanswered,
                ":due": effects.due,
            },
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()
}

fn move_row(
    connection: &Connection,
    boot: i64,
    advance: &Advance,
    effects: &Effects,
) -> rusqlite::Result<Updated> {
    let (holder, next_run_at) = effects.work.map_or((0, None), |work| columns(work, boot));
    let (attempt_keep, attempt_add) = factors(effects.attempts);
    let (unanswered_keep, unanswered_add) = factors(effects.unanswered);
    let state = advance.status.map(|(state, _)| state);
    let status_at = advance.status.map(|(_, at)| at.as_millis());
    connection
        .prepare_cached(
            "UPDATE tasks SET
                 last_seq = last_seq + :entries,
                 state = coalesce(:state, state),
                 status_at = coalesce(:status_at, status_at),
                 terminal_at = coalesce(:terminal_at, terminal_at),
                 visible = coalesce(:visible, visible),
                 fence = fence + :fence_step,
                 attempt = attempt * :attempt_keep + :attempt_add,
                 deaths = deaths * :attempt_keep,
                 unanswered = unanswered * :unanswered_keep + :unanswered_add,
                 boot = CASE WHEN :works THEN :boot ELSE boot END,
                 next_run_at = CASE WHEN :works THEN :next_run_at ELSE next_run_at END
             WHERE n = :n AND (:states >> state) & 1 AND (:fence IS NULL OR fence = :fence)
               AND unanswered <= :max_unanswered AND (NOT :due OR next_run_at IS NOT NULL)
             RETURNING last_seq, fence, attempt",
        )?
        .query_row(
            named_params! {
                ":n": advance.no.0,
                ":entries": number(advance.log.len()),
                ":state": state.map(TaskState::number),
                ":status_at": status_at,
                ":terminal_at": status_at.filter(|_| state.is_some_and(TaskState::is_terminal)),
                ":visible": advance.visibility.map(|visibility| visibility.number()),
                ":fence_step": effects.fence_step,
                ":attempt_keep": attempt_keep,
                ":attempt_add": attempt_add,
                ":unanswered_keep": unanswered_keep,
                ":unanswered_add": unanswered_add,
                ":works": effects.work.is_some(),
                ":boot": holder,
                ":next_run_at": next_run_at,
                ":states": effects.from.0,
                ":fence": effects.fence,
                ":max_unanswered": effects.max_unanswered,
                ":due": effects.due,
            },
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()
}

/// Appends one segment, whose last entry has number `last_seq`.
fn append(connection: &Connection, n: i64, last_seq: Seq, fence: i64, log: &Log) -> rusqlite::Result<()> {
    if log.is_empty() {
        return Ok(());
    }
    let place = rows::place(n, last_seq + 1 - log.len());
    connection
        .prepare_cached("INSERT INTO segments (place, last_seq, fence, bytes) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![place, number(last_seq), fence, &log.segment()[..]])
        .map(drop)
}

fn save(connection: &Connection, n: i64, attempt: i64, bytes: Option<&[u8]>) -> rusqlite::Result<()> {
    let Some(bytes) = bytes else { return Ok(()) };
    connection
        .prepare_cached("INSERT OR REPLACE INTO saved (n, attempt, bytes) VALUES (?1, ?2, ?3)")?
        .execute(params![n, attempt, bytes])
        .map(drop)
}

/// The row that a refused change met.
fn refused(connection: &Connection, n: i64) -> rusqlite::Result<Result<Committed, NotCommitted>> {
    let met = connection
        .prepare_cached("SELECT state, fence, unanswered FROM tasks WHERE n = ?1")?
        .query_row(params![n], |row| {
            Ok(Conflict {
                state: TaskState::from_number(row.get(0)?),
                fence: row.get(1)?,
                unanswered: row.get(2)?,
            })
        })
        .optional()?;
    Ok(Err(NotCommitted::Conflict(met.unwrap_or(Conflict { state: None, fence: 0, unanswered: 0 }))))
}

/// Who holds the work, and when it is due.
fn columns(work: Work, boot: i64) -> (i64, Option<i64>) {
    match work {
        Work::Idle => (0, None),
        Work::Held => (boot, None),
        Work::Due(at) => (0, Some(at.as_millis())),
    }
}

fn factors(counter: Counter) -> (i64, i64) {
    match counter {
        Counter::Add(by) => (1, by),
        Counter::Set(to) => (0, to),
    }
}

fn number(count: Seq) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
