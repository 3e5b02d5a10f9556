//! Decodes every record of a store and reports which cannot be decoded.
//!
//! SQLite's own check finds damaged pages, indexes and types, and not a byte that has changed in a value. The decoders are
//! those with which the server reads. Outputs of steps and checkpoints of agents are bytes of any form, so there is
//! nothing in them to decode.

use std::fmt::{self, Display};

use engine::{
    ids::{Ids, Tag, TaskNo},
    log::{Corrupt, Log, Seq},
    store::{TaskRow, Visibility},
    task::fold,
};
use protocol::{Dialect, TaskState};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::sqlite::tables::agent_switches;

use crate::sqlite::tables::api_keys;

use crate::sqlite::tables::dead_letters;

use crate::sqlite::tables::keys::{self, DamagedRun};

use crate::sqlite::migrations;

use crate::sqlite::reads::readers::Failure;

use crate::sqlite::tables::rows::{segment_key, select_tasks, split_segment_key, task_row};

use crate::sqlite::reads::snapshots;

use crate::sqlite::tables::webhooks;

/// How many damaged records are named.
const MAX_NAMED: usize = 1_000;

/// Decodes every record. Each finding has the table, the record and what is wrong. A store of an earlier schema is not
/// decoded: the server migrates it first.
pub(super) fn check(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    if connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?
        != migrations::newest()
    {
        return Ok(Vec::new());
    }
    let mut check = Check { connection, ids: ids(connection)?, findings: Vec::new(), more: 0 };
    check.tasks();
    check.table("scopes", "SELECT id, tenant, principal, agent, end_user FROM scopes", |row| {
        webhooks::scope(row, 1).map(drop)
    });
    check.table("turn_keys", "SELECT seq, n, key, hash FROM turn_keys", |row| {
        let _: ([u8; 16], [u8; 16]) = (row.get(2)?, row.get(3)?);
        Ok(())
    });
    check.table("journal", "SELECT step, turn, n FROM journal", |row| row.get::<_, String>(0).map(drop));
    check.table("saved", "SELECT n, skill, bytes FROM saved", |row| {
        let _: (Option<String>, Vec<u8>) = (row.get(1)?, row.get(2)?);
        Ok(())
    });
    check.table("waiting", "SELECT n, tenant, agent, skill FROM waiting", |row| {
        let _: (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(())
    });
    check.table("webhooks", webhooks::EVERY, |row| {
        webhooks::webhook(row)?;
        known_dialect(row)
    });
    check.table("dead_letters", dead_letters::EVERY, |row| {
        dead_letters::read(row)?;
        known_dialect(row)
    });
    check.table("api_keys", api_keys::EVERY, |row| api_keys::read(row).map(drop));
    check.table("agent_switches", agent_switches::EVERY, |row| agent_switches::read(row).map(drop));
    check.table("counts", "SELECT scope, state FROM counts", |row| {
        match TaskState::from_number(row.get(1)?) {
            Some(_) => Ok(()),
            None => Err(rusqlite::Error::IntegralValueOutOfRange(1, row.get(1)?)),
        }
    });
    check.keys();
    Ok(check.finish())
}

/// The ids of the store. One without a key for them has no tasks.
fn ids(connection: &Connection) -> rusqlite::Result<Ids> {
    let key = "SELECT value FROM meta WHERE key = 'id_key'";
    Ok(Ids::new(connection.query_row(key, [], |row| row.get(0)).optional()?.unwrap_or_default()))
}

fn known_dialect(row: &Row<'_>) -> rusqlite::Result<()> {
    let column = row.as_ref().column_index("dialect")?;
    let number: u8 = row.get(column)?;
    match Dialect::from_number(number) {
        Some(_) => Ok(()),
        None => Err(rusqlite::Error::IntegralValueOutOfRange(column, number.into())),
    }
}

struct Check<'c> {
    connection: &'c Connection,
    ids: Ids,
    findings: Vec<String>,
    more: usize,
}

impl Check<'_> {
    fn add(&mut self, table: &str, record: impl Display, what: impl Display) {
        if self.findings.len() < MAX_NAMED {
            self.findings.push(format!("{table}: {record}: {what}"));
        } else {
            self.more += 1;
        }
    }

    fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.findings.push(format!("{} more records are damaged", self.more));
        }
        self.findings
    }

    /// Decodes the rows of a table. A row is named by its first column, and by its task if it has a column `n`.
    fn table(&mut self, table: &str, query: &str, decode: impl Fn(&Row<'_>) -> rusqlite::Result<()>) {
        let connection = self.connection;
        let read = || -> rusqlite::Result<Vec<(String, String)>> {
            let (mut damaged, mut statement) = (Vec::new(), connection.prepare(query)?);
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                if let Err(error) = decode(row) {
                    damaged.push((self.name(row)?, described(row, &error)));
                }
            }
            Ok(damaged)
        };
        match read() {
            Ok(damaged) => damaged.into_iter().for_each(|(record, what)| self.add(table, record, what)),
            Err(error) => self.add(table, "it cannot be read to its end", error),
        }
    }

    fn name(&self, row: &Row<'_>) -> rusqlite::Result<String> {
        let columns = row.as_ref();
        let first = format!("{} {}", columns.column_name(0)?, Value(row.get_ref(0)?));
        let Ok(column) = columns.column_index("n") else { return Ok(first) };
        let task = self.task(row.get(column)?);
        Ok(if column == 0 { task } else { format!("{first} of {task}") })
    }

    /// A task as clients and operators know it.
    fn task(&self, n: i64) -> String {
        let tag = "SELECT tag FROM tasks WHERE n = ?1";
        let tag: Option<[u8; 10]> = self.connection.query_row(tag, params![n], |row| row.get(0)).ok();
        tag.map_or_else(
            || format!("task {n}"),
            |tag| format!("task {n} ({})", self.ids.task(TaskNo(n), Tag(tag))),
        )
    }

    fn tasks(&mut self) {
        let connection = self.connection;
        let read = |check: &mut Self| -> rusqlite::Result<()> {
            let mut statement = connection.prepare(select_tasks!("ORDER BY n"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let n = row.get(0)?;
                match task_row(&check.ids, row) {
                    Err(error) => check.add("tasks", check.task(n), described(row, &error)),
                    // Of a purged task, a part of the log may be left.
                    Ok(row) if row.visibility == Visibility::Purged => {}
                    Ok(row) => check.log_and_doc(row),
                }
            }
            Ok(())
        };
        if let Err(error) = read(self) {
            self.add("tasks", "it cannot be read to its end", error);
        }
    }

    fn log_and_doc(&mut self, row: TaskRow) {
        let no = row.no;
        if let Err(what) = check_log(self.connection, &row) {
            self.add("segments", self.task(no.0), what);
            return;
        }
        let folded = snapshots::whole(self.connection, row).map_err(Damage::from);
        if let Err(what) = folded.and_then(|snapshot| Ok(fold::into_task(&self.ids, snapshot)?)) {
            self.add("docs", self.task(no.0), what);
        }
    }

    fn keys(&mut self) {
        match keys::damaged_runs(self.connection) {
            Ok(damaged) => {
                for DamagedRun { run, page } in damaged {
                    self.add(
                        "key_pages",
                        format_args!("run {run}, page {page}"),
                        "its keys are not in order",
                    );
                }
            }
            Err(error) => self.add("key_runs", "it cannot be read to its end", error),
        }
    }
}

/// Decodes the whole log of a task: it has all entries from the first to the last one that the row records.
fn check_log(connection: &Connection, row: &TaskRow) -> Result<(), Damage> {
    let mut statement = connection.prepare_cached(
        "SELECT place, bytes, last_seq FROM segments WHERE place >= ?1 AND place < ?2 ORDER BY place",
    )?;
    let mut segments = statement.query(params![segment_key(row.no.0, 0), segment_key(row.no.0 + 1, 0)])?;
    let mut last: Seq = 0;
    while let Some(segment) = segments.next()? {
        let (_, first) = split_segment_key(segment.get(0)?);
        if first != last + 1 {
            return Err(Damage(format!("entry {first} follows entry {last}")));
        }
        let log = Log::unpack(segment.get::<_, Vec<u8>>(1)?.into()).map_err(|error| at(first, &error))?;
        for (entry, seq) in log.entries().iter().zip(first..) {
            entry.event().map_err(|error| at(seq, &error))?;
            entry.user_message().map_err(|error| at(seq, &error))?;
        }
        last += log.len();
        if segment.get::<_, i64>(2)?.unsigned_abs() != last {
            return Err(Damage(format!("the segment of entry {first} does not end where its row records")));
        }
    }
    if last != row.last_seq {
        return Err(Damage(format!("the log ends with entry {last}, its row records {}", row.last_seq)));
    }
    Ok(())
}

fn at(seq: Seq, error: &Corrupt) -> Damage {
    Damage(format!("entry {seq}: {error}"))
}

/// What is wrong with a record.
struct Damage(String);

impl From<rusqlite::Error> for Damage {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<Corrupt> for Damage {
    fn from(error: Corrupt) -> Self {
        Self(error.to_string())
    }
}

impl From<Failure> for Damage {
    fn from(failure: Failure) -> Self {
        Self(failure.damage().unwrap_or_else(|| engine::store::StoreError::from(failure).to_string()))
    }
}

impl Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Names the column instead of its index.
fn described(row: &Row<'_>, error: &rusqlite::Error) -> String {
    use rusqlite::Error;

    let column = |index: usize| row.as_ref().column_name(index).unwrap_or("?").to_owned();
    match error {
        Error::IntegralValueOutOfRange(index, _) => format!("the value of {} is unknown", column(*index)),
        Error::FromSqlConversionFailure(index, _, cause) => format!("{}: {cause}", column(*index)),
        Error::Utf8Error(index, cause) => format!("{}: {cause}", column(*index)),
        Error::InvalidColumnType(_, name, found) => format!("{name} is of the type {found}"),
        other => other.to_string(),
    }
}

/// The value of a key.
struct Value<'a>(rusqlite::types::ValueRef<'a>);

impl Display for Value<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        use rusqlite::types::ValueRef;

        match self.0 {
            ValueRef::Integer(number) => write!(out, "{number}"),
            ValueRef::Text(text) => out.write_str(&String::from_utf8_lossy(text)),
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => out.write_str("without a name"),
        }
    }
}
