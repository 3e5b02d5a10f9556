//! Applies changes as SQL statements.
//!
//! The first statement of each change is its guard: when it affects no row, the change is rejected with a conflict
//! and the rest of the change is skipped. Invariant: a rejected change has written nothing.

use engine::{
    ids::{Tag, TaskNo},
    log::{Log, Seq},
    push::{MAX_WEBHOOKS, PushEvents},
    store::{
        Accept, Advance, CapReached, Change, Committed, Conflict, Counter, Demand, Effects, JournalChange,
        JournalStep, KeyUsed, MessageKey, NewContext, NotCommitted, SavedState, Step, Visibility, WorkState,
    },
};
use protocol::{TaskId, TaskState, Timestamp};
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row, params};

use crate::sqlite::tables::counts::Counts;

use crate::sqlite::tables::docs;

use crate::sqlite::files::free_space::LowSpace;

use crate::sqlite::tables::keys::KeyIndex;

use super::row_limits;

use crate::sqlite::tables::rows;

use crate::sqlite::tables::scopes::Scopes;

use crate::sqlite::tables::usage::{Sources, Usage};

use crate::sqlite::tables::waiting;

use crate::sqlite::tables::webhooks;

/// The writer's in-memory state beside the rows.
pub(crate) struct WriterCache {
    /// Boot number of this process, stored as the lease holder of its tasks.
    pub(crate) boot: i64,
    pub(crate) scopes: Scopes,
    pub(crate) keys: KeyIndex,
    pub(crate) counts: Counts,
    pub(crate) usage: Usage,
    /// Whether messages of clients are refused.
    pub(crate) low_space: LowSpace,
    /// Tasks whose log has become long enough to be folded, as of this commit.
    pub(crate) grown: Vec<TaskNo>,
    /// Whether this commit makes a webhook due.
    pub(crate) webhooks_due: bool,
}

/// The writer's connection during one transaction. The statements that nearly every change needs are prepared once
/// per transaction, because each lookup in the statement cache hashes the whole SQL text.
pub(crate) struct WriteTransaction<'a> {
    connection: &'a Connection,
    insert_task: CachedStatement<'a>,
    insert_segment: CachedStatement<'a>,
    /// `None` until a change needs it.
    append_to_task: Option<CachedStatement<'a>>,
    /// `None` until a change needs it.
    update_task: Option<CachedStatement<'a>>,
}

impl<'a> WriteTransaction<'a> {
    pub(crate) fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        // Nothing reads the column `fence`.
        let insert_segment = "INSERT INTO segments (place, last_seq, fence, bytes) VALUES (?1, ?2, 0, ?3)";
        Ok(Self {
            connection,
            insert_task: connection.prepare_cached(INSERT_TASK)?,
            insert_segment: connection.prepare_cached(insert_segment)?,
            append_to_task: None,
            update_task: None,
        })
    }

    /// Applies a change. A rejection is an `Ok(Err(…))`; an SQL error stops the writer.
    pub(crate) fn apply(
        &mut self,
        cache: &mut WriterCache,
        change: &Change,
    ) -> rusqlite::Result<Result<Committed, NotCommitted>> {
        if let Err(too_large) = row_limits::check_blobs(change) {
            return Ok(Err(too_large));
        }
        match change {
            Change::Accept(accept) => accept_task(self, cache, accept),
            Change::Advance(advance) => advance_task(self, cache, advance),
        }
    }

    /// Appends one segment, whose last entry has sequence number `last_seq`.
    fn append(&mut self, n: i64, last_seq: Seq, log: &Log) -> rusqlite::Result<()> {
        if log.is_empty() {
            return Ok(());
        }
        let segment_key = rows::segment_key(n, last_seq + 1 - log.len());
        let row = params![segment_key, number(last_seq), &log.segment()[..]];
        self.insert_segment.execute(row).map(drop)
    }
}

/// The statement in this place, prepared by the first call.
fn prepared<'s, 'a>(
    place: &'s mut Option<CachedStatement<'a>>,
    connection: &'a Connection,
    sql: &str,
) -> rusqlite::Result<&'s mut CachedStatement<'a>> {
    let statement = match place.take() {
        Some(statement) => statement,
        None => connection.prepare_cached(sql)?,
    };
    Ok(place.insert(statement))
}

/// Approximate number of bytes a change writes; bounds batches and the queue, and drives checkpoints.
pub(crate) fn size(change: &Change) -> usize {
    change.log().segment().len()
        + change.saved().map_or(0, |saved| saved.state.len())
        + change.journal().size()
        + 256
}

/// Parameters by position: named ones would be looked up for every row, and every new task inserts this row.
macro_rules! insert_task {
    ($context:literal) => {
        concat!(
            "INSERT INTO tasks (n, tag, scope, context, context_tag, context_name, state, status_at, last_seq, fence,
                                attempt, boot, next_run_at, visible, key, hash, size, client_id, skill, origin, deadline,
                                progress_size, webhooks, skill_source, admitted)
             VALUES (?1, ?2, ?3, ",
            $context,
            ", ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)
             ON CONFLICT DO NOTHING"
        )
    };
}

const INSERT_TASK: &str = insert_task!("coalesce(?4, ?1)");

/// A context that the client named may have been created since the caller looked it up: then the task joins it.
const INSERT_TASK_IN_NAMED_CONTEXT: &str = insert_task!(
    "coalesce(?4, (SELECT context FROM tasks WHERE scope = ?3 AND context_name = ?6 LIMIT 1), ?1)"
);

fn accept_task(
    transaction: &mut WriteTransaction<'_>,
    cache: &mut WriterCache,
    accept: &Accept,
) -> rusqlite::Result<Result<Committed, NotCommitted>> {
    let connection = transaction.connection;
    if let Some(key) = &accept.key
        && let Some(used) = first_use(connection, &cache.keys, key)?
    {
        return Ok(Err(NotCommitted::KeyUsed(used)));
    }
    if cache.low_space.is_low() {
        return Ok(Err(NotCommitted::LowOnSpace));
    }
    if accept.caps.limits_tasks() {
        let WriterCache { counts, scopes, usage, .. } = cache;
        let used = usage.of(&Sources { connection, counts, scopes }, &accept.scope)?;
        let used = used.with_asking_turns(accept.asking_turns);
        if let Err(reached) = accept.caps.check(Demand::Task, used) {
            return Ok(Err(NotCommitted::CapReached(reached)));
        }
    }
    let scope = cache.scopes.intern(connection, &accept.scope, accept.status_at.as_millis())?;
    let (holder, next_run_at) = work_columns(accept.work, cache.boot);
    // A turn that ran, even one that has already finished, has used its first attempt.
    let ran = i64::from(!matches!(accept.work, WorkState::Due(_)));
    let (joined, tag, name) = match &accept.context {
        NewContext::Own => (None, None, None),
        NewContext::Named(name) => (None, None, Some(name.as_str())),
        NewContext::Joined(row) => {
            (Some(row.first.0), Some(row.tag.0.as_slice()), row.name.as_ref().map(|name| name.as_str()))
        }
    };
    let size = bytes(&accept.log);
    let progress_size = accept.progress_size.cast_signed();
    let row = params![
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
        accept.visibility.number(),
        accept.key.map(|key| key.key),
        accept.key.map(|key| key.hash),
        size,
        accept.client_id.as_ref().map(TaskId::as_str),
        accept.skill,
        accept.origin.number(),
        accept.deadline.map(Timestamp::as_millis),
        progress_size,
        accept.webhook.is_some(),
        accept.skill_source.number(),
        accept.admitted,
    ];
    let inserted = match name {
        None => transaction.insert_task.execute(row)?,
        Some(_) => connection.prepare_cached(INSERT_TASK_IN_NAMED_CONTEXT)?.execute(row)?,
    };
    if inserted == 0 {
        return conflict(connection, accept.no.0);
    }
    transaction.append(accept.no.0, accept.log.len(), &accept.log)?;
    save(connection, accept.no.0, accept.saved.as_ref())?;
    write_journal(connection, accept.no.0, &accept.journal)?;
    if accept.state.is_interrupted() {
        waiting::add(connection, accept.no.0)?;
    }
    if let Some(webhook) = &accept.webhook {
        let events = PushEvents::among(accept.log.entries().iter().map(|entry| entry.kind()), None);
        let due = events.intersects(webhook.events).then_some(accept.status_at.as_millis());
        webhooks::insert(connection, accept.no, webhook, 0, due)?;
        cache.webhooks_due |= due.is_some();
    }
    cache.keys.add(accept.key.map(|key| key.key), accept.no.0);
    match accept.visibility {
        Visibility::Visible => {
            cache.counts.add(scope, accept.state);
            if accept.state.is_terminal() {
                cache.counts.finish(accept.state);
            }
        }
        Visibility::Undecided => cache.scopes.add_undecided(scope),
        Visibility::Hidden | Visibility::Purged => {}
    }
    let standing = (accept.state, accept.visibility);
    cache.usage.add_task(&cache.scopes, scope, &accept.scope, standing);
    cache.usage.add_bytes(scope, size);
    if docs::should_fold(accept.state.is_settled(), 1, size) {
        cache.grown.push(accept.no);
    }
    Ok(Ok(Committed {
        last_seq: accept.log.len(),
        fence: ran,
        attempt: ran,
        size: counted(size, progress_size),
    }))
}

/// The task whose first message used this key. The task row decides, because the key index may still contain keys of
/// deleted tasks.
pub(crate) fn first_use(
    connection: &Connection,
    keys: &KeyIndex,
    key: &MessageKey,
) -> rusqlite::Result<Option<KeyUsed>> {
    keys.find(connection, &key.key, |n| {
        connection
            .prepare_cached("SELECT tag, hash FROM tasks WHERE n = ?1 AND key = ?2")?
            .query_row(params![n, key.key], |row| {
                let hash: [u8; 16] = row.get(1)?;
                Ok(KeyUsed { task: TaskNo(n), tag: Tag(row.get(0)?), seq: 1, same: hash == key.hash })
            })
            .optional()
    })
}

fn advance_task(
    transaction: &mut WriteTransaction<'_>,
    cache: &mut WriterCache,
    advance: &Advance,
) -> rusqlite::Result<Result<Committed, NotCommitted>> {
    let connection = transaction.connection;
    if let Some(key) = &advance.key
        && let Some(used) = rows::turn_key(connection, advance.no, key)?
    {
        return Ok(Err(NotCommitted::KeyUsed(used)));
    }
    if let Some(demand) = advance.step.demand() {
        if cache.low_space.is_low() {
            return Ok(Err(NotCommitted::LowOnSpace));
        }
        if advance.caps.limits_tasks()
            && let Some(reached) = exceeded_cap(connection, cache, advance, demand)?
        {
            return Ok(Err(NotCommitted::CapReached(reached)));
        }
    }
    if let Some(webhook) = &advance.webhook
        && !webhooks::has_room(connection, advance.no, &webhook.id, MAX_WEBHOOKS)?
    {
        return Ok(Err(NotCommitted::TooManyWebhooks));
    }
    let effects = advance.effects();
    let appends_only = advance.status.is_none()
        && advance.visibility.is_none()
        && advance.skill.is_none()
        && advance.admitted.is_none()
        && advance.deadline.is_none()
        && !advance.progress;
    let updated = match advance.step {
        Step::Report { .. } if appends_only => append_to_row(transaction, cache, advance, &effects)?,
        _ => update_row(transaction, cache, advance, &effects)?,
    };
    let Some(updated) = updated else { return rejection(connection, advance) };
    let last_seq = Seq::try_from(updated.last_seq).unwrap_or_default();
    if !advance.log.is_empty() {
        cache.usage.add_bytes(updated.scope, bytes(&advance.log));
    }
    transaction.append(advance.no.0, last_seq, &advance.log)?;
    save(connection, advance.no.0, advance.saved.as_ref())?;
    write_journal(connection, advance.no.0, &advance.journal)?;
    if let Some(key) = &advance.key {
        let seq = number(last_seq + 1 - advance.log.len());
        connection
            .prepare_cached("INSERT INTO turn_keys (n, key, hash, seq) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![advance.no.0, key.key, key.hash, seq])?;
    }
    if updated.webhooks > 0 || advance.webhook.is_some() {
        notify_webhooks(connection, cache, advance, &updated, effects.turn_step > 0)?;
    }
    if !advance.log.is_empty() && docs::should_fold(updated.settled, updated.tail, updated.size) {
        cache.grown.push(advance.no);
    }
    let size = counted(updated.size, updated.progress_size);
    Ok(Ok(Committed { last_seq, fence: updated.fence, attempt: updated.attempt, size }))
}

/// Makes the webhooks due that want what a change appends, and registers the one that comes with it.
fn notify_webhooks(
    connection: &Connection,
    cache: &mut WriterCache,
    advance: &Advance,
    updated: &Updated,
    reopens: bool,
) -> rusqlite::Result<()> {
    let last_before = updated.last_seq - number(advance.log.len());
    if reopens {
        webhooks::end_turn(connection, advance.no, last_before)?;
    }
    if let Some(webhook) = &advance.webhook {
        webhooks::add_to_task(connection, advance.no, webhook, last_before, None)?;
    }
    if !advance.log.is_empty() {
        cache.webhooks_due |= webhooks::make_due(connection, advance.no, &advance.log, updated.state_before)?;
    }
    Ok(())
}

/// The cap of the task's owner that a message would exceed.
fn exceeded_cap(
    connection: &Connection,
    cache: &mut WriterCache,
    advance: &Advance,
    demand: Demand,
) -> rusqlite::Result<Option<CapReached>> {
    let Some(task) = counted_task(connection, advance.no.0)? else { return Ok(None) };
    let WriterCache { counts, scopes, usage, .. } = cache;
    let used = usage.of_id(&Sources { connection, counts, scopes }, task.scope)?;
    Ok(advance.caps.check(demand, used.with_asking_turns(advance.asking_turns)).err())
}

// Both updates append to the log under the same guard, so the columns of the log, the guard and their parameters stand
// once, in the two macros below. Parameters are bound by position, in the order of their first use: names would be looked
// up for every row. With `OR FAIL` SQLite keeps no copy of the pages that a statement changes. A statement that violates a
// constraint cannot be undone then, and needs not be: any error of the writer ends the process.

/// An update that sets these columns beside those of the log.
macro_rules! guarded_update {
    ($columns:literal) => {
        concat!(
            "UPDATE OR FAIL tasks SET
                 last_seq = last_seq + :entries,
                 size = size + :bytes,
                 tail = tail + :segments,
                 progress_size = progress_size + :progress_size",
            $columns,
            " WHERE n = :n AND (:states >> state) & 1 AND (:fence IS NULL OR fence = :fence)
               AND (NOT :held OR boot = :me) AND (NOT :due OR next_run_at IS NOT NULL)
               AND unanswered <= :max_unanswered AND last_seq <= :max_seq - :entries AND visible < 3
             RETURNING last_seq, fence, attempt, size, tail, state, progress_size, scope, webhooks"
        )
    };
}

/// The parameters of a [`guarded_update`], with those of its own columns.
macro_rules! guarded_params {
    ($cache:expr, $advance:expr, $effects:expr, [$($column:expr),* $(,)?]) => {
        params![
            number($advance.log.len()),
            bytes(&$advance.log),
            !$advance.log.is_empty(),
            $advance.progress_size.cast_signed(),
            $($column,)*
            $advance.no.0,
            $effects.from.0,
            $effects.fence,
            $effects.held,
            $cache.boot,
            $effects.due,
            $effects.max_unanswered,
            number(row_limits::max_seq($advance.step)),
        ]
    };
}

/// [`append_to_row`].
const APPEND_TO_TASK: &str = guarded_update!("");

/// [`update_row`].
const UPDATE_TASK: &str = guarded_update!(
    ",
         deadline = CASE WHEN :turn_step THEN :deadline ELSE coalesce(:deadline, deadline) END,
         state = coalesce(:state, state),
         status_at = coalesce(:status_at, status_at),
         skill = iif(skill_source = 0 OR skill IS NULL, coalesce(:skill, skill), skill),
         skill_source = iif((skill_source = 0 OR skill IS NULL) AND :skill IS NOT NULL, :skill_source, skill_source),
         admitted = coalesce(:admitted, admitted),
         visible = coalesce(:visible, visible),
         turn = turn + :turn_step,
         fence = fence + :fence_step,
         attempt = attempt * :attempt_keep + :attempt_add,
         deaths = deaths * :attempt_keep,
         crashes = crashes * NOT :begins_turn,
         probation = CASE WHEN :ends_probation THEN iif(:repeats AND probation = 2, 2, 0)
                          WHEN :probation THEN max(probation, 1) ELSE probation END,
         unanswered = unanswered * :unanswered_keep + :unanswered_add,
         boot = CASE WHEN :works THEN :boot ELSE boot END,
         next_run_at = CASE WHEN :works THEN :next_run_at ELSE next_run_at END"
);

/// Columns of the row after an update.
struct Updated {
    last_seq: i64,
    fence: i64,
    attempt: i64,
    size: i64,
    tail: i64,
    settled: bool,
    progress_size: i64,
    scope: i64,
    webhooks: i64,
    state_before: Option<TaskState>,
}

impl Updated {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let state = TaskState::from_number(row.get(5)?);
        Ok(Self {
            last_seq: row.get(0)?,
            fence: row.get(1)?,
            attempt: row.get(2)?,
            size: row.get(3)?,
            tail: row.get(4)?,
            settled: state.is_some_and(TaskState::is_settled),
            progress_size: row.get(6)?,
            scope: row.get(7)?,
            webhooks: row.get(8)?,
            state_before: state,
        })
    }
}

/// Appends to the log only. Updates no indexed column, which is cheaper than [`update_row`].
fn append_to_row(
    transaction: &mut WriteTransaction<'_>,
    cache: &WriterCache,
    advance: &Advance,
    effects: &Effects,
) -> rusqlite::Result<Option<Updated>> {
    let row = guarded_params!(cache, advance, effects, []);
    let statement = prepared(&mut transaction.append_to_task, transaction.connection, APPEND_TO_TASK)?;
    statement.query_row(row, Updated::read).optional()
}

fn update_row(
    transaction: &mut WriteTransaction<'_>,
    cache: &mut WriterCache,
    advance: &Advance,
    effects: &Effects,
) -> rusqlite::Result<Option<Updated>> {
    let connection = transaction.connection;
    let before = counted_task(connection, advance.no.0)?;
    let (holder, next_run_at) = effects.work.map_or((0, None), |work| work_columns(work, cache.boot));
    let (attempt_keep, attempt_add) = counter_factors(effects.attempts);
    let (unanswered_keep, unanswered_add) = counter_factors(effects.unanswered);
    let stops_holding = effects.work.is_some_and(|work| work != WorkState::Held);
    // A crash on probation counts until the next attempt has begun.
    let repeats = matches!(advance.step, Step::Retry { .. } | Step::Release { .. }) && !advance.progress;
    let ends_probation = stops_holding || effects.probation == Some(false);
    let state = advance.status.map(|(state, _)| state);
    let status_at = advance.status.map(|(_, at)| at.as_millis());
    let row = guarded_params!(
        cache,
        advance,
        effects,
        [
            effects.turn_step,
            advance.deadline.map(Timestamp::as_millis),
            state.map(TaskState::number),
            status_at,
            advance.skill,
            advance.skill_source.number(),
            advance.admitted,
            advance.visibility.map(|visibility| visibility.number()),
            effects.fence_step,
            attempt_keep,
            attempt_add,
            effects.begins_turn,
            ends_probation,
            repeats,
            effects.probation == Some(true),
            unanswered_keep,
            unanswered_add,
            effects.work.is_some(),
            holder,
            next_run_at,
        ]
    );
    let statement = prepared(&mut transaction.update_task, connection, UPDATE_TASK)?;
    let mut updated = statement.query_row(row, Updated::read).optional()?;
    if let (Some(updated), Some(was)) = (&mut updated, before) {
        updated.state_before = Some(was.state);
        update_counts(cache, &was, advance);
        match state.unwrap_or(was.state) {
            state if state.is_interrupted() => waiting::add(connection, advance.no.0)?,
            _ if was.state.is_interrupted() => waiting::remove(connection, advance.no.0)?,
            _ => {}
        }
    }
    Ok(updated)
}

/// What the counts depend on.
pub(crate) struct CountedTask {
    pub(crate) scope: i64,
    pub(crate) state: TaskState,
    pub(crate) visibility: Visibility,
    /// Bytes of its log.
    pub(crate) size: i64,
}

pub(crate) fn counted_task(connection: &Connection, n: i64) -> rusqlite::Result<Option<CountedTask>> {
    let found = connection
        .prepare_cached("SELECT scope, state, visible, size FROM tasks WHERE n = ?1")?
        .query_row(params![n], |row| {
            let state = TaskState::from_number(row.get(1)?);
            let visibility = Visibility::from_number(row.get(2)?);
            let Some((state, visibility)) = state.zip(visibility) else { return Ok(None) };
            Ok(Some(CountedTask { scope: row.get(0)?, state, visibility, size: row.get(3)? }))
        })
        .optional()?;
    Ok(found.flatten())
}

/// Updates the counts for a task that has changed state or visibility.
fn update_counts(cache: &mut WriterCache, was: &CountedTask, advance: &Advance) {
    let visibility = advance.visibility.unwrap_or(was.visibility);
    let state = advance.status.map_or(was.state, |(state, _)| state);
    cache.usage.change_task(was.scope, (was.state, was.visibility), (state, visibility));
    if was.visibility == Visibility::Visible {
        cache.counts.remove(was.scope, was.state);
    }
    if visibility == Visibility::Visible {
        cache.counts.add(was.scope, state);
        let was_counted = was.visibility == Visibility::Visible && was.state.is_terminal();
        if state.is_terminal() && !was_counted {
            cache.counts.finish(state);
        }
    }
    if was.visibility == Visibility::Undecided && visibility != Visibility::Undecided {
        cache.scopes.remove_undecided(was.scope);
    }
}

/// Deletes the tombstones of purged tasks and the keys that only they held. Their scopes may be without tasks then.
pub(crate) fn drop_purged(
    connection: &Connection,
    cache: &mut WriterCache,
    purged_before: i64,
    max: usize,
) -> rusqlite::Result<usize> {
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let mut old = connection.prepare_cached(PURGED_BEFORE)?;
    let old = old.query_map(params![purged_before, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let old = old.collect::<rusqlite::Result<Vec<(i64, i64)>>>()?;
    for (n, scope) in &old {
        connection.prepare_cached("DELETE FROM turn_keys WHERE n = ?1")?.execute(params![n])?;
        connection.prepare_cached("DELETE FROM tasks WHERE n = ?1")?.execute(params![n])?;
        cache.scopes.emptied.insert(*scope);
    }
    if !old.is_empty() {
        cache.keys.tasks_deleted(connection, old.len())?;
    }
    Ok(old.len())
}

pub(crate) const PURGED_BEFORE: &str = "SELECT n, scope FROM tasks INDEXED BY tasks_purged
     WHERE visible = 3 AND purged_at < ?1 ORDER BY purged_at LIMIT ?2";

fn save(connection: &Connection, n: i64, saved: Option<&SavedState>) -> rusqlite::Result<()> {
    let Some(SavedState { skill, state }) = saved else { return Ok(()) };
    connection
        // Nothing reads the column `attempt`.
        .prepare_cached("INSERT OR REPLACE INTO saved (n, attempt, bytes, skill) VALUES (?1, 0, ?2, ?3)")?
        .execute(params![n, state.as_ref(), skill])
        .map(drop)
}

fn write_journal(connection: &Connection, n: i64, change: &JournalChange) -> rusqlite::Result<()> {
    match change {
        JournalChange::Keep => {}
        JournalChange::Clear => {
            connection.prepare_cached("DELETE FROM journal WHERE n = ?1")?.execute(params![n])?;
        }
        JournalChange::Write(steps) => insert_steps(connection, n, steps)?,
        JournalChange::EndTurn(steps) => {
            connection.prepare_cached(DELETE_STEPS_OF_TURNS)?.execute(params![n])?;
            insert_steps(connection, n, steps)?;
        }
    }
    Ok(())
}

pub(crate) const DELETE_STEPS_OF_TURNS: &str = "DELETE FROM journal WHERE n = ?1 AND turn > 0";

fn insert_steps(connection: &Connection, n: i64, steps: &[JournalStep]) -> rusqlite::Result<()> {
    let mut insert = connection
        .prepare_cached("INSERT OR REPLACE INTO journal (n, turn, step, output) VALUES (?1, ?2, ?3, ?4)")?;
    for JournalStep { owner, id, output } in steps {
        insert.execute(params![n, number(owner.number()), id, output.as_deref()])?;
    }
    Ok(())
}

/// The rejection for a change whose guard matched no row, with the state that the row has instead.
fn conflict(connection: &Connection, n: i64) -> rusqlite::Result<Result<Committed, NotCommitted>> {
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

/// Why no row matched the guards of an update.
fn rejection(
    connection: &Connection,
    advance: &Advance,
) -> rusqlite::Result<Result<Committed, NotCommitted>> {
    let max = row_limits::max_seq(advance.step);
    let full = connection
        .prepare_cached("SELECT 1 FROM tasks WHERE n = ?1 AND last_seq > ?2")?
        .exists(params![advance.no.0, number(max) - number(advance.log.len())])?;
    if full {
        let text = format!("the task would have more than {max} events, the most that the store can hold");
        return Ok(Err(NotCommitted::TooLarge(text)));
    }
    conflict(connection, advance.no.0)
}

/// The `boot` and `next_run_at` columns for this work state.
fn work_columns(work: WorkState, boot: i64) -> (i64, Option<i64>) {
    match work {
        WorkState::Idle => (0, None),
        WorkState::Held => (boot, None),
        WorkState::Due(at) => (0, Some(at.as_millis())),
    }
}

fn counter_factors(counter: Counter) -> (i64, i64) {
    match counter {
        Counter::Add(by) => (1, by),
        Counter::Set(to) => (0, to),
    }
}

/// The size of a log that counts towards its limit, in bytes.
fn counted(size: i64, progress_size: i64) -> u64 {
    (size - progress_size).max(0).unsigned_abs()
}

fn bytes(log: &Log) -> i64 {
    i64::try_from(log.segment().len()).unwrap_or(i64::MAX)
}

pub(crate) fn number(count: Seq) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
