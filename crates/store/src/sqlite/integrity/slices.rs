//! Checks a large store in slices of rows, each in its own short read transaction: a long one would keep the
//! write-ahead log from being reset.
//!
//! Every row of every table is read in full and must be found through each index of its table; every segment must
//! decode, and the log of each task must have no gap and end at the last entry that the task's row records. What only
//! the check of the whole file covers: free pages, the pointer map, pages used twice, index entries without a row.

use bytes::Bytes;
use engine::log::{Log, Seq};
use rusqlite::{Connection, Row, params, params_from_iter, types::Value};

use crate::sqlite::rows::split_segment_key;

/// Most rows that one slice reads.
const SLICE_ROWS: usize = 256;
/// Bytes after which a slice ends.
const SLICE_BYTES: usize = 1 << 20;

/// Checks all tables; `pause` runs between two slices and returns whether to abort. Returns the first finding.
pub(super) fn check(
    connection: &Connection,
    mut pause: impl FnMut() -> bool,
) -> rusqlite::Result<Option<String>> {
    for table in tables(connection)? {
        let mut cursor = Cursor::default();
        while !cursor.at_end {
            let tx = connection.unchecked_transaction()?;
            let finding = table.check_slice(&tx, &mut cursor)?;
            tx.finish()?;
            if finding.is_some() || pause() {
                return Ok(finding);
            }
        }
    }
    Ok(None)
}

/// A table, the columns that identify its rows, and its indexes.
struct Table {
    name: String,
    key: Vec<String>,
    /// For each index its name and a query that counts the rows of a key range that it lacks.
    indexes: Vec<(String, String)>,
}

/// The position in a table.
#[derive(Default)]
struct Cursor {
    /// Key of the last row that was read.
    last: Option<Vec<Value>>,
    at_end: bool,
    /// Of the table `segments`: task and last entry of the segment that was read last.
    segment: Option<(i64, Seq)>,
}

impl Table {
    fn check_slice(&self, tx: &Connection, cursor: &mut Cursor) -> rusqlite::Result<Option<String>> {
        let key = self.key.join(", ");
        let after = match &cursor.last {
            Some(_) => format!("WHERE ({key}) > ({})", parameters(1, self.key.len())),
            None => String::new(),
        };
        let name = &self.name;
        let select = format!("SELECT {key}, * FROM {name} {after} ORDER BY {key} LIMIT {SLICE_ROWS}");
        let mut statement = tx.prepare_cached(&select)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(cursor.last.iter().flatten()))?;
        let (mut first, mut count, mut bytes) = (None, 0, 0);
        while bytes < SLICE_BYTES {
            let Some(row) = rows.next()? else { break };
            let key = (0..self.key.len()).map(|at| row.get(at)).collect::<rusqlite::Result<Vec<Value>>>()?;
            bytes += size(row, columns)?;
            count += 1;
            if name == "segments"
                && let Some(finding) = check_segment(row, cursor)?
            {
                return Ok(Some(finding));
            }
            first.get_or_insert_with(|| key.clone());
            cursor.last = Some(key);
        }
        drop(rows);
        cursor.at_end = count < SLICE_ROWS && bytes < SLICE_BYTES;
        let (Some(first), Some(last)) = (first, &cursor.last) else { return Ok(None) };
        if name == "tasks"
            && let Some(finding) = check_log_ends(tx, &first, last)?
        {
            return Ok(Some(finding));
        }
        self.check_indexes(tx, &first, last)
    }

    fn check_indexes(
        &self,
        tx: &Connection,
        first: &[Value],
        last: &[Value],
    ) -> rusqlite::Result<Option<String>> {
        for (index, missing) in &self.indexes {
            let missing: i64 = tx
                .prepare_cached(missing)?
                .query_row(params_from_iter(first.iter().chain(last)), |row| row.get(0))?;
            if missing > 0 {
                return Ok(Some(format!("{missing} rows of table {} are not in index {index}", self.name)));
            }
        }
        Ok(None)
    }
}

/// All tables of the schema.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
    let mut names = connection.prepare(
        "SELECT name, wr FROM pragma_table_list
         WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let names = names.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let names = names.collect::<rusqlite::Result<Vec<(String, bool)>>>()?;
    names.into_iter().map(|(name, without_rowid)| table(connection, name, without_rowid)).collect()
}

fn table(connection: &Connection, name: String, without_rowid: bool) -> rusqlite::Result<Table> {
    let key = if without_rowid {
        let mut key =
            connection.prepare("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?;
        key.query_map([&name], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?
    } else {
        vec!["rowid".to_owned()]
    };
    let mut indexes = connection.prepare(
        "SELECT list.name, coalesce(sql, '') FROM pragma_index_list(?1) AS list
         JOIN sqlite_schema AS entry ON entry.name = list.name WHERE NOT (?2 AND list.origin = 'pk')",
    )?;
    let indexes = indexes.query_map(params![name, without_rowid], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let indexes = indexes
        .map(|index| {
            let (index, sql): (String, String) = index?;
            let missing = missing_in_index(connection, &name, &key, &index, &sql)?;
            Ok((index, missing))
        })
        .collect::<rusqlite::Result<_>>()?;
    Ok(Table { name, key, indexes })
}

/// The query that counts the rows of a key range that an index lacks.
fn missing_in_index(
    connection: &Connection,
    table: &str,
    key: &[String],
    index: &str,
    sql: &str,
) -> rusqlite::Result<String> {
    let mut columns = connection.prepare("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")?;
    let columns = columns.query_map([index], |row| row.get(0))?;
    let columns = columns.collect::<rusqlite::Result<Vec<String>>>()?;
    // The condition of a partial index; it is repeated so that SQLite can use the index.
    let condition = sql.split_once(" WHERE ").map_or("true", |(_, condition)| condition);
    let same = |column: &String| format!("entry.{column} IS row.{column}");
    let same: Vec<_> = columns.iter().chain(key).map(same).collect();
    let (same, keys) = (same.join(" AND "), key.join(", "));
    let (first, last) = (parameters(1, key.len()), parameters(1 + key.len(), key.len()));
    Ok(format!(
        "SELECT count(*) FROM {table} AS row
         WHERE ({keys}) >= ({first}) AND ({keys}) <= ({last}) AND ({condition})
           AND NOT EXISTS (SELECT 1 FROM {table} AS entry INDEXED BY {index} WHERE {condition} AND {same})"
    ))
}

/// `?1, ?2, …`
fn parameters(first: usize, count: usize) -> String {
    let all: Vec<_> = (first..first + count).map(|number| format!("?{number}")).collect();
    all.join(", ")
}

/// Bytes of a row; reads all of it.
fn size(row: &Row<'_>, columns: usize) -> rusqlite::Result<usize> {
    let mut size = 0;
    for column in 0..columns {
        let value = row.get_ref(column)?;
        size += value.as_bytes_or_null().ok().flatten().map_or(8, <[u8]>::len);
    }
    Ok(size)
}

/// Decodes a segment and compares its entries with the previous segment of its task.
fn check_segment(row: &Row<'_>, cursor: &mut Cursor) -> rusqlite::Result<Option<String>> {
    let (task, first) = split_segment_key(row.get("place")?);
    let last: i64 = row.get("last_seq")?;
    let bytes: Vec<u8> = row.get("bytes")?;
    let entries = match Log::unpack(Bytes::from(bytes)) {
        Ok(log) => log.len(),
        Err(corrupt) => return Ok(Some(format!("task {task}, entry {first}: {corrupt}"))),
    };
    let previous = cursor.segment.filter(|(of, _)| *of == task).map_or(0, |(_, last)| last);
    if first != previous + 1 || i64::try_from(first + entries - 1) != Ok(last) {
        let text = format!("the log of task {task} has a gap after entry {previous}");
        return Ok(Some(text));
    }
    cursor.segment = Some((task, first + entries - 1));
    Ok(None)
}

/// The log of each task in a range must end at the last entry that the row records.
fn check_log_ends(tx: &Connection, first: &[Value], last: &[Value]) -> rusqlite::Result<Option<String>> {
    let torn: Vec<i64> = tx
        .prepare_cached(
            "SELECT n FROM tasks WHERE n BETWEEN ?1 AND ?2 AND visible < 3 AND last_seq IS NOT
                 (SELECT last_seq FROM segments
                  WHERE place BETWEEN tasks.n << 24 AND (tasks.n << 24) + 16777215 ORDER BY place DESC LIMIT 1)
             LIMIT 1",
        )?
        .query_map(params_from_iter(first.iter().chain(last)), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(torn.first().map(|n| format!("the log of task {n} does not end at the last entry its row records")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations;

    /// A store with this many tasks of two segments each.
    fn filled(tasks: i64) -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(folder.path().join("a2ad.db")).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "synchronous", "OFF").unwrap();
        assert!(migrations::run(&mut connection).is_ok());
        let tx = connection.transaction().unwrap();
        let scope =
            "INSERT INTO scopes (id, tenant, principal, agent, end_user) VALUES (1, 't', 'p', 'a', 'u')";
        tx.execute(scope, []).unwrap();
        for n in 1..=tasks {
            tx.execute(
                "INSERT INTO tasks (n, tag, scope, context, client_id, context_name, key, state, status_at,
                                    last_seq, visible, size)
                 VALUES (?1, zeroblob(10), 1, ?1, 't' || ?1, 'c', randomblob(16), 3, ?1, 2, 1, 99)",
                params![n],
            )
            .unwrap();
            for seq in 1..=2 {
                let segment = Log::pack([(sample(), None)]).segment().clone();
                tx.execute(
                    "INSERT INTO segments (place, last_seq, fence, bytes) VALUES (?1, ?2, 1, ?3)",
                    params![(n << 24) + seq, seq, &segment[..]],
                )
                .unwrap();
            }
            tx.execute(
                "INSERT INTO journal (n, turn, step, output) VALUES (?1, 1, 'step', x'07')",
                params![n],
            )
            .unwrap();
            tx.execute(
                "INSERT INTO turn_keys (n, key, hash, seq) VALUES (?1, randomblob(16), zeroblob(16), 2)",
                params![n],
            )
            .unwrap();
        }
        tx.commit().unwrap();
        (folder, connection)
    }

    fn sample() -> protocol::Event {
        protocol::Event::Message(protocol::Message::new(
            "m",
            protocol::Role::Agent,
            vec![protocol::Part::text("text")],
        ))
    }

    fn finding(connection: &Connection) -> Option<String> {
        check(connection, || false).unwrap()
    }

    #[test]
    fn intact_store_passes_and_every_row_and_index_is_read() {
        let (_folder, connection) = filled(1_000);
        let mut slices = 0;
        let count = || {
            slices += 1;
            false
        };
        assert_eq!(check(&connection, count).unwrap(), None);
        // 1,000 tasks, 2,000 segments, 1,000 journal steps and 1,000 turn keys in slices of 256, and the other tables.
        assert!(slices > 4 + 8 + 4 + 4, "{slices}");
        let indexes: usize = tables(&connection).unwrap().iter().map(|table| table.indexes.len()).sum();
        let all = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND tbl_name <> 'meta'
                   AND name NOT LIKE 'sqlite_autoindex_turn_keys%'";
        let all: i64 = connection.query_row(all, [], |row| row.get(0)).unwrap();
        assert!(indexes > 9 && indexes <= usize::try_from(all).unwrap(), "{indexes} of {all}");
        let tables = tables(&connection).unwrap();
        let indexes = |name| &tables.iter().find(|table| table.name == name).unwrap().indexes;
        // A table without row ids is its primary key; another one has an index for it.
        assert_eq!(indexes("journal")[0].0, "sqlite_autoindex_journal_1");
        assert_eq!(indexes("agent_counts").len(), 0);
    }

    #[test]
    fn gap_torn_log_and_undecodable_segment_are_found() {
        for (damage, found) in [
            ("DELETE FROM segments WHERE place = (700 << 24) + 1", "the log of task 700 has a gap"),
            ("UPDATE segments SET last_seq = 3 WHERE place = (700 << 24) + 2", "the log of task 700"),
            ("UPDATE tasks SET last_seq = 3 WHERE n = 700", "the log of task 700 does not end"),
            ("UPDATE segments SET bytes = x'09' WHERE place = (700 << 24) + 2", "task 700, entry 2"),
        ] {
            let (_folder, connection) = filled(800);
            connection.execute(damage, []).unwrap();
            let finding = finding(&connection).unwrap_or_default();
            assert!(finding.contains(found), "{damage}: {finding}");
        }
    }

    #[test]
    fn row_missing_in_an_index_is_found() {
        let (folder, connection) = filled(600);
        // Redefines an index so that it should contain all tasks and lacks those that were not visible.
        let spoil = "UPDATE tasks SET visible = 2 WHERE n = 500;
             PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, 'visible = 1', 'visible < 3') WHERE name = 'tasks_listed'";
        connection.execute_batch(spoil).unwrap();
        drop(connection);
        let connection = Connection::open(folder.path().join("a2ad.db")).unwrap();
        let finding = finding(&connection).unwrap_or_default();
        assert_eq!(finding, "1 rows of table tasks are not in index tasks_listed");
    }

    /// Whether the log can be reset at the pauses of a check, with a change between each two of them.
    fn log_can_be_reset(
        folder: &tempfile::TempDir,
        check: impl FnOnce(&mut dyn FnMut() -> bool),
    ) -> Vec<bool> {
        let writer = Connection::open(folder.path().join("a2ad.db")).unwrap();
        writer.busy_timeout(std::time::Duration::ZERO).unwrap();
        let mut resets = Vec::new();
        check(&mut || {
            writer.execute("UPDATE tasks SET deaths = deaths + 1 WHERE n = 1", []).unwrap();
            let busy: i64 =
                writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
            resets.push(busy == 0);
            false
        });
        resets
    }

    #[test]
    fn log_can_be_reset_between_two_slices() {
        let (folder, connection) = filled(1_000);
        let resets = log_can_be_reset(&folder, |pause| assert_eq!(check(&connection, pause).unwrap(), None));
        assert!(resets.len() > 16 && resets.iter().all(|reset| *reset), "{resets:?}");
        // For comparison: a transaction over the whole check prevents it.
        let resets = log_can_be_reset(&folder, |pause| {
            let tx = connection.unchecked_transaction().unwrap();
            tx.query_row("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0)).unwrap();
            pause();
        });
        assert_eq!(resets, [false]);
    }
}
