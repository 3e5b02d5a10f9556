//! Notifications that were given up: kept with their bytes, so that an operator can send them again.

use bytes::Bytes;
use engine::{
    ids::{Ids, Tag, TaskNo},
    push::PushEvents,
    store::{DeadLetter, NewDeadLetter, NewWebhook, WebhookNo},
};
use protocol::{ConfigId, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::sqlite::writes::changes::number;

use crate::sqlite::reads::readers::Failure;

use super::webhooks::{form, scope};

/// Keeps a notification, with a copy of its webhook: the webhook and the task may be deleted before it is sent again.
pub(crate) fn insert(
    connection: &Connection,
    ids: &Ids,
    webhook: WebhookNo,
    letter: &NewDeadLetter,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let task = connection
        .prepare_cached("SELECT n, tag, client_id FROM tasks JOIN webhooks USING (n) WHERE number = ?1")?
        .query_row(params![webhook.0], |row| {
            Ok((TaskNo(row.get(0)?), Tag(row.get(1)?), row.get::<_, Option<String>>(2)?))
        })
        .optional()?;
    let Some((no, tag, name)) = task else { return Ok(()) };
    let task_id = name.unwrap_or_else(|| ids.task(no, tag).to_string());
    connection
        .prepare_cached(
            "INSERT INTO dead_letters (n, tag, task_id, tenant, principal, agent, end_user, number, id, dialect, style,
                                       events, host, sealed, seq, attempts, error, media_type, body, died_at)
             SELECT webhooks.n, tag, ?2, tenant, principal, agent, end_user, number, webhooks.id, dialect, style,
                    events, host, sealed, ?3, ?4, ?5, ?6, ?7, ?8
             FROM webhooks JOIN tasks USING (n) JOIN scopes ON scopes.id = tasks.scope WHERE number = ?1",
        )?
        .execute(params![
            webhook.0,
            task_id,
            number(letter.seq),
            letter.attempts,
            letter.error,
            letter.media_type,
            &letter.body[..],
            now.as_millis(),
        ])
        .map(drop)
}

/// The columns of a dead letter, in the order that [`read`] reads, with this as the body.
macro_rules! select_letters {
    ($body:literal, $rest:literal) => {
        concat!(
            "SELECT letter, n, tag, task_id, tenant, principal, agent, end_user, number, id, dialect, style, events, host, ",
            "sealed, seq, attempts, error, media_type, length(body), died_at, ",
            $body,
            " FROM dead_letters ",
            $rest
        )
    };
}

/// Every dead letter.
pub(crate) const EVERY: &str = select_letters!("body", "");

/// Without bodies, newest first.
pub(crate) fn list(tx: &Connection, before: i64, max: usize) -> Result<Vec<DeadLetter>, Failure> {
    let mut statement =
        tx.prepare_cached(select_letters!("x''", "WHERE letter < ?1 ORDER BY letter DESC LIMIT ?2"))?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    Ok(statement.query_map(params![before, max], read)?.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn find(tx: &Connection, no: i64) -> Result<Option<DeadLetter>, Failure> {
    let mut statement = tx.prepare_cached(select_letters!("body", "WHERE letter = ?1"))?;
    Ok(statement.query_row(params![no], read).optional()?)
}

pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    Ok(DeadLetter {
        no: row.get(0)?,
        task: TaskNo(row.get(1)?),
        tag: Tag(row.get(2)?),
        task_id: TaskId::from(row.get::<_, String>(3)?),
        scope: scope(row, 4)?,
        webhook: WebhookNo(row.get(8)?),
        config: NewWebhook {
            id: ConfigId::from(row.get::<_, String>(9)?),
            form: form(row.get(10)?, row.get(11)?),
            events: PushEvents::from_number(row.get(12)?),
            host: row.get(13)?,
            sealed: Bytes::from(row.get::<_, Vec<u8>>(14)?),
        },
        letter: NewDeadLetter {
            seq: row.get::<_, i64>(15)?.unsigned_abs(),
            attempts: row.get(16)?,
            error: row.get(17)?,
            media_type: row.get(18)?,
            body: Bytes::from(row.get::<_, Vec<u8>>(21)?),
        },
        size: row.get::<_, i64>(19)?.unsigned_abs(),
        died_at: Timestamp::from_millis(row.get(20)?),
    })
}

pub(crate) fn delete(connection: &Connection, no: i64) -> rusqlite::Result<bool> {
    let delete = "DELETE FROM dead_letters WHERE letter = ?1";
    connection.prepare_cached(delete)?.execute(params![no]).map(|deleted| deleted > 0)
}

/// Deletes those that were given up before this time, at most `max`. Returns how many there were.
pub(crate) fn expire(connection: &Connection, before: Timestamp, max: usize) -> rusqlite::Result<usize> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "DELETE FROM dead_letters WHERE letter IN
                 (SELECT letter FROM dead_letters WHERE died_at < ?1 ORDER BY died_at LIMIT ?2)",
        )?
        .execute(params![before.as_millis(), max])
}
