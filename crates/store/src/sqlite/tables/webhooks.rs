//! Webhooks of tasks and how far each was notified.
//!
//! The writer registers and deletes webhooks, makes them due in the commit that appends an event, and moves them on with the
//! results of deliveries. Readers find what is due.

use bytes::Bytes;
use engine::{
    Scope, ScopeParts,
    ids::{Ids, Tag, TaskNo},
    log::Log,
    push::PushEvents,
    store::{
        DeliveryOutcome, DeliveryResult, DueWebhook, DueWebhooks, DueWebhooksQuery, ListedDelivery,
        NewWebhook, NotificationForm, PendingDelivery, Registered, Webhook, WebhookNo, WebhookOwner,
    },
};
use protocol::{ConfigId, Dialect, TaskState, Timestamp, dialect::Style};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use crate::sqlite::writes::changes::number;

use super::dead_letters;

use crate::sqlite::reads::readers::Failure;

use super::rows::{select_tasks, task_row};

/// The columns of a webhook, in the order that [`webhook`] reads.
macro_rules! select_webhooks {
    ($rest:literal) => {
        concat!(
            "SELECT webhooks.number, webhooks.id, webhooks.dialect, webhooks.style, webhooks.events, webhooks.host, ",
            "webhooks.sealed, webhooks.acked_seq, webhooks.until_seq, webhooks.next_at, webhooks.due_since, ",
            "webhooks.attempts, webhooks.error, webhooks.delivered, webhooks.disabled, webhooks.confirmed, webhooks.n ",
            "FROM webhooks ",
            $rest
        )
    };
}

/// Every webhook.
pub(crate) const EVERY: &str = select_webhooks!("");

pub(crate) fn webhook(row: &Row<'_>) -> rusqlite::Result<Webhook> {
    let time = |column: usize| -> rusqlite::Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
    };
    Ok(Webhook {
        no: WebhookNo(row.get(0)?),
        config: NewWebhook {
            id: ConfigId::from(row.get::<_, String>(1)?),
            form: form(row.get(2)?, row.get(3)?),
            events: PushEvents::from_number(row.get(4)?),
            host: row.get(5)?,
            sealed: Bytes::from(row.get::<_, Vec<u8>>(6)?),
        },
        acked: row.get::<_, i64>(7)?.unsigned_abs(),
        until: row.get::<_, Option<i64>>(8)?.map(i64::unsigned_abs),
        next_at: time(9)?,
        due_since: time(10)?,
        attempts: row.get(11)?,
        error: row.get(12)?,
        delivered: row.get::<_, i64>(13)?.unsigned_abs(),
        disabled: row.get(14)?,
        confirmed: row.get(15)?,
    })
}

pub(crate) fn form(dialect: u8, style: u8) -> NotificationForm {
    let style = Style {
        both_tags: style & 1 != 0,
        cancelled: style & 2 != 0,
        data_as_text: style & 4 != 0,
        answer_in_status: style & 8 != 0,
        draft_states: style & 16 != 0,
        // About streams.
        ..Style::OWN
    };
    NotificationForm { dialect: Dialect::from_number(dialect).unwrap_or_default(), style }
}

pub(crate) fn style_number(style: Style) -> u8 {
    let bits =
        [style.both_tags, style.cancelled, style.data_as_text, style.answer_in_status, style.draft_states];
    bits.into_iter().enumerate().fold(0, |number, (at, bit)| number | u8::from(bit) << at)
}

/// Registers a webhook of a visible task.
pub(crate) fn register(
    connection: &Connection,
    task: TaskNo,
    new: &NewWebhook,
    max: usize,
) -> rusqlite::Result<Registered> {
    let found = connection
        .prepare_cached("SELECT state, last_seq, status_at FROM tasks WHERE n = ?1 AND visible = 1")?
        .query_row(params![task.0], |row| Ok((row.get::<_, u8>(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((state, last_seq, status_at)): Option<(u8, i64, i64)> = found else {
        return Ok(Registered::NoTask);
    };
    if !has_room(connection, task, &new.id, max)? {
        return Ok(Registered::TooMany);
    }
    // The last entry of a settled task is the status that its client may wait for.
    let settled = TaskState::from_number(state).is_some_and(TaskState::is_settled);
    let acked = if settled { last_seq - 1 } else { last_seq };
    add_to_task(connection, task, new, acked, settled.then_some(status_at))?;
    Ok(Registered::Stored)
}

/// Whether a task may have a webhook with this id: it has one already, or fewer than `max`.
pub(crate) fn has_room(
    connection: &Connection,
    task: TaskNo,
    id: &ConfigId,
    max: usize,
) -> rusqlite::Result<bool> {
    let others: i64 = connection
        .prepare_cached("SELECT count(*) FROM webhooks WHERE n = ?1 AND id <> ?2")?
        .query_row(params![task.0, id.as_str()], |row| row.get(0))?;
    Ok(usize::try_from(others).is_ok_and(|others| others < max))
}

/// Adds a webhook to a task that exists already; see [`insert`].
pub(crate) fn add_to_task(
    connection: &Connection,
    task: TaskNo,
    new: &NewWebhook,
    acked: i64,
    due: Option<i64>,
) -> rusqlite::Result<()> {
    insert(connection, task, new, acked, due)?;
    count(connection, task)
}

/// Adds a webhook that has the entries up to `acked` behind it and is due at this time, if at any. One with the same id is
/// replaced and goes on where it was, unless it belongs to an earlier turn. The row of the task has to count it.
pub(crate) fn insert(
    connection: &Connection,
    task: TaskNo,
    new: &NewWebhook,
    acked: i64,
    due: Option<i64>,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO webhooks (n, id, dialect, style, events, host, sealed, acked_seq, next_at, due_since)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
             ON CONFLICT (n, id) DO UPDATE SET
                 dialect = ?3, style = ?4, events = ?5, host = ?6, sealed = ?7, attempts = 0, error = NULL,
                 disabled = 0, confirmed = 0, next_at = coalesce(due_since, ?9), due_since = coalesce(due_since, ?9),
                 acked_seq = CASE WHEN until_seq IS NULL AND ?9 IS NULL THEN acked_seq
                                  WHEN until_seq IS NULL THEN min(acked_seq, ?8) ELSE ?8 END,
                 until_seq = NULL",
        )?
        .execute(params![
            task.0,
            new.id.as_str(),
            new.form.dialect.number(),
            style_number(new.form.style),
            new.events.number(),
            new.host,
            &new.sealed[..],
            acked,
            due,
        ])
        .map(drop)
}

/// Deletes a webhook with what is to be delivered to it.
pub(crate) fn delete(connection: &Connection, task: TaskNo, id: &ConfigId) -> rusqlite::Result<bool> {
    let deleted = connection
        .prepare_cached("DELETE FROM webhooks WHERE n = ?1 AND id = ?2")?
        .execute(params![task.0, id.as_str()])?;
    count(connection, task)?;
    Ok(deleted > 0)
}

fn count(connection: &Connection, task: TaskNo) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE tasks SET webhooks = (SELECT count(*) FROM webhooks WHERE n = ?1) WHERE n = ?1",
        )?
        .execute(params![task.0])
        .map(drop)
}

/// Deletes the webhooks of a purged task.
pub(crate) fn delete_all(connection: &Connection, task: TaskNo) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM webhooks WHERE n = ?1")?.execute(params![task.0]).map(drop)
}

/// Makes the webhooks of a task due that want one of the appended events and are not due already. Returns whether there
/// are any.
pub(crate) fn make_due(
    connection: &Connection,
    task: TaskNo,
    log: &Log,
    before: Option<TaskState>,
) -> rusqlite::Result<bool> {
    let events = PushEvents::among(log.entries().iter().map(|entry| entry.kind()), before);
    let due = connection
        .prepare_cached(
            "UPDATE webhooks SET (next_at, due_since) = (SELECT status_at, status_at FROM tasks WHERE n = ?1)
             WHERE n = ?1 AND next_at IS NULL AND until_seq IS NULL AND disabled = 0 AND events & ?2",
        )?
        .execute(params![task.0, events.number()])?;
    Ok(due > 0)
}

/// Ends the webhooks of a task at this entry: the task is reopened, and they belong to the earlier turn.
pub(crate) fn end_turn(connection: &Connection, task: TaskNo, last_seq: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE webhooks SET until_seq = ?2 WHERE n = ?1 AND until_seq IS NULL")?
        .execute(params![task.0, last_seq])
        .map(drop)
}

/// Records the result of a delivery. Returns whether the webhook exists, and whether it is due again.
pub(crate) fn record(
    connection: &Connection,
    ids: &Ids,
    result: &DeliveryResult,
) -> rusqlite::Result<(bool, bool)> {
    let (webhook, now) = (result.webhook.0, result.now.as_millis());
    let changed = match &result.outcome {
        DeliveryOutcome::Delivered(seq) => {
            connection.prepare_cached(DELIVERED)?.execute(params![webhook, number(*seq), now])?
        }
        DeliveryOutcome::Nothing { acked, last_seq } => connection
            .prepare_cached(NOTHING)?
            .execute(params![webhook, number(*acked), number(*last_seq), now])?,
        DeliveryOutcome::Failed { retry_at, attempts, error } => connection
            .prepare_cached(
                "UPDATE webhooks SET next_at = ?2, attempts = ?3, error = ?4
                 WHERE number = ?1 AND next_at IS NOT NULL",
            )?
            .execute(params![webhook, retry_at.as_millis(), attempts, error])?,
        DeliveryOutcome::Dead { letter, disable } => {
            dead_letters::insert(connection, ids, result.webhook, letter, result.now)?;
            connection.prepare_cached(GIVEN_UP)?.execute(params![
                webhook,
                number(letter.seq),
                now,
                disable,
                letter.error
            ])?
        }
        DeliveryOutcome::Confirmed => connection
            .prepare_cached("UPDATE webhooks SET confirmed = 1 WHERE number = ?1")?
            .execute(params![webhook])?,
    };
    let is_due = connection
        .prepare_cached("SELECT 1 FROM webhooks WHERE number = ?1 AND next_at <= ?2")?
        .exists(params![webhook, now])?;
    Ok((changed > 0, is_due))
}

/// Whether the task has entries after `?2` that belong to the webhook.
macro_rules! has_more_than {
    ($seq:literal) => {
        concat!(
            "(SELECT min(last_seq, coalesce(webhooks.until_seq, last_seq)) > ",
            $seq,
            " FROM tasks WHERE tasks.n = webhooks.n)"
        )
    };
}

const DELIVERED: &str = concat!(
    "UPDATE webhooks SET acked_seq = max(acked_seq, ?2), attempts = 0, error = NULL, delivered = delivered + 1,
         next_at = CASE WHEN ",
    has_more_than!("?2"),
    " THEN ?3 END, due_since = CASE WHEN ",
    has_more_than!("?2"),
    " THEN ?3 END WHERE number = ?1"
);

const NOTHING: &str = concat!(
    "UPDATE webhooks SET acked_seq = max(acked_seq, ?2), attempts = 0,
         next_at = CASE WHEN ",
    has_more_than!("?3"),
    " THEN ?4 END, due_since = CASE WHEN ",
    has_more_than!("?3"),
    " THEN ?4 END WHERE number = ?1"
);

const GIVEN_UP: &str = concat!(
    "UPDATE webhooks SET acked_seq = max(acked_seq, ?2), attempts = 0, error = ?5, disabled = ?4,
         next_at = CASE WHEN NOT ?4 AND ",
    has_more_than!("?2"),
    " THEN ?3 END, due_since = CASE WHEN NOT ?4 AND ",
    has_more_than!("?2"),
    " THEN ?3 END WHERE number = ?1"
);

/// Makes the pending deliveries of a host due now.
pub(crate) fn release(connection: &Connection, host: &str, now: Timestamp) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("UPDATE webhooks SET next_at = ?2 WHERE next_at > ?2 AND host = ?1")?
        .execute(params![host, now.as_millis()])
        .map(|released| released > 0)
}

/// Makes a pending delivery due now.
pub(crate) fn retry(connection: &Connection, webhook: WebhookNo, now: Timestamp) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "UPDATE webhooks SET next_at = min(next_at, ?2) WHERE number = ?1 AND next_at IS NOT NULL",
        )?
        .execute(params![webhook.0, now.as_millis()])
        .map(|changed| changed > 0)
}

/// The webhooks of a task, oldest first.
pub(crate) fn of_task(tx: &Connection, scope: i64, task: TaskNo) -> Result<Vec<Webhook>, Failure> {
    let mut statement = tx.prepare_cached(select_webhooks!(
        "JOIN tasks USING (n) WHERE n = ?1 AND scope = ?2 AND visible = 1 ORDER BY number"
    ))?;
    Ok(statement.query_map(params![task.0, scope], webhook)?.collect::<rusqlite::Result<_>>()?)
}

/// What is due, host by host, and of each what is due longest first.
pub(crate) fn due(tx: &Connection, query: &DueWebhooksQuery) -> Result<DueWebhooks, Failure> {
    let mut due = DueWebhooks::default();
    let mut host = next_host(tx, &query.after_host)?;
    for _ in 0..MAX_HOSTS {
        let Some(name) = host else { return Ok(due) };
        if !query.without_hosts.contains(&name) {
            add_due(tx, query, &name, &mut due)?;
        } else if let Some(too_old) = query.too_old {
            add(tx, TOO_OLD, params![name, too_old.as_millis(), MAX_TOO_OLD], &name, &mut due)?;
        }
        if due.webhooks.len() >= query.max {
            due.resume_after = Some(name);
            return Ok(due);
        }
        host = next_host(tx, &name)?;
        due.resume_after = host.is_some().then_some(name);
    }
    Ok(due)
}

/// How many hosts a query examines at most.
const MAX_HOSTS: usize = 256;
/// How much that has waited too long is found of a host that is left out.
const MAX_TOO_OLD: i64 = 16;

fn next_host(tx: &Connection, after: &str) -> rusqlite::Result<Option<String>> {
    tx.prepare_cached(NEXT_HOST)?.query_row(params![after], |row| row.get(0)).optional()
}

pub(crate) const NEXT_HOST: &str = "SELECT host FROM webhooks INDEXED BY webhooks_due
     WHERE next_at IS NOT NULL AND host > ?1 ORDER BY host LIMIT 1";

/// Adds what is due of a host, and notes when the next one becomes due.
fn add_due(
    tx: &Connection,
    query: &DueWebhooksQuery,
    host: &str,
    due: &mut DueWebhooks,
) -> Result<(), Failure> {
    let (now, max) = (query.now.as_millis(), i64::try_from(query.max_per_host).unwrap_or(i64::MAX));
    let before = due.webhooks.len();
    let mut statement = tx.prepare_cached(FIRST_OF_HOST)?;
    let mut rows = statement.query(params![host, max])?;
    while let Some(row) = rows.next()? {
        let next_at: i64 = row.get(1)?;
        if next_at > now {
            let next_at = Timestamp::from_millis(next_at);
            due.next = Some(due.next.map_or(next_at, |next| next.min(next_at)));
            break;
        }
        due.webhooks.push(due_webhook(row, host)?);
    }
    due.more |= due.webhooks.len() - before == query.max_per_host;
    let horizon = now.saturating_add(i64::try_from(query.max_ahead.as_millis()).unwrap_or(i64::MAX));
    add(tx, TOO_FAR_AHEAD, params![host, horizon, max], host, due)
}

/// A query for webhooks that have something to deliver, with the columns in the order that [`due_webhook`] reads.
macro_rules! select_due {
    ($rest:literal) => {
        concat!(
            "SELECT webhooks.number, webhooks.next_at, scopes.tenant, scopes.principal ",
            "FROM webhooks INDEXED BY webhooks_due CROSS JOIN tasks USING (n) ",
            "CROSS JOIN scopes ON scopes.id = tasks.scope WHERE webhooks.host = ?1 AND webhooks.next_at IS NOT NULL ",
            $rest
        )
    };
}

fn due_webhook(row: &Row<'_>, host: &str) -> rusqlite::Result<DueWebhook> {
    let text = |column: usize| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    let owner = WebhookOwner::new(text(2)?, text(3)?);
    Ok(DueWebhook { no: WebhookNo(row.get(0)?), host: host.to_owned(), owner })
}

pub(crate) const FIRST_OF_HOST: &str = select_due!("ORDER BY webhooks.next_at LIMIT ?2");
pub(crate) const TOO_FAR_AHEAD: &str = select_due!("AND webhooks.next_at > ?2 LIMIT ?3");
pub(crate) const TOO_OLD: &str = select_due!("AND webhooks.due_since < ?2 LIMIT ?3");

/// Adds the webhooks of a host that a statement finds.
fn add(
    tx: &Connection,
    statement: &str,
    params: &[&dyn ToSql],
    host: &str,
    due: &mut DueWebhooks,
) -> Result<(), Failure> {
    let mut statement = tx.prepare_cached(statement)?;
    for found in statement.query_map(params, |row| due_webhook(row, host))? {
        due.webhooks.push(found?);
    }
    Ok(())
}

/// The webhook of a host that is due first, also if it is due later.
pub(crate) fn first_pending(tx: &Connection, host: &str) -> Result<Option<DueWebhook>, Failure> {
    let mut statement = tx.prepare_cached(FIRST_OF_HOST)?;
    Ok(statement.query_row(params![host, 1], |row| due_webhook(row, host)).optional()?)
}

/// A webhook with its task.
pub(crate) fn pending(
    tx: &Connection,
    ids: &Ids,
    number: WebhookNo,
) -> Result<Option<PendingDelivery>, Failure> {
    let found = tx
        .prepare_cached(select_webhooks!("WHERE number = ?1"))?
        .query_row(params![number.0], |row| Ok((webhook(row)?, row.get::<_, i64>(16)?)))
        .optional()?;
    let Some((webhook, n)) = found else { return Ok(None) };
    let task = tx
        .prepare_cached(select_tasks!("WHERE n = ?1 AND visible < 3"))?
        .query_row(params![n], |row| task_row(ids, row))
        .optional()?;
    let Some(task) = task else { return Ok(None) };
    let scope = tx.prepare_cached(SCOPE_OF_TASK)?.query_row(params![n], |row| scope(row, 0))?;
    Ok(Some(PendingDelivery { webhook, task, scope }))
}

const SCOPE_OF_TASK: &str = "SELECT tenant, principal, agent, end_user
     FROM tasks JOIN scopes ON scopes.id = tasks.scope WHERE n = ?1";

pub(crate) fn scope(row: &Row<'_>, first: usize) -> rusqlite::Result<Scope> {
    Ok(Scope::new(ScopeParts {
        tenant: row.get(first)?,
        principal: row.get(first + 1)?,
        agent: row.get(first + 2)?,
        end_user: row.get(first + 3)?,
    }))
}

/// Pending deliveries of all owners, by number.
pub(crate) fn list_pending(
    tx: &Connection,
    after: WebhookNo,
    max: usize,
) -> Result<Vec<ListedDelivery>, Failure> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let mut statement = tx.prepare_cached(select_webhooks!(
        "WHERE number > ?1 AND next_at IS NOT NULL ORDER BY number LIMIT ?2"
    ))?;
    let found = statement.query_map(params![after.0, max], |row| Ok((webhook(row)?, row.get(16)?)))?;
    let found: Vec<(Webhook, i64)> = found.collect::<rusqlite::Result<_>>()?;
    let mut tag_of = tx.prepare_cached("SELECT tag FROM tasks WHERE n = ?1")?;
    let mut listed = Vec::with_capacity(found.len());
    for (webhook, n) in found {
        let tag = Tag(tag_of.query_row(params![n], |row| row.get(0))?);
        let scope = tx.prepare_cached(SCOPE_OF_TASK)?.query_row(params![n], |row| scope(row, 0))?;
        listed.push(ListedDelivery { webhook, task: TaskNo(n), tag, scope });
    }
    Ok(listed)
}
