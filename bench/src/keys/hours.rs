//! Keys in one table per hour: the newest is small enough to stay in memory, the others are only read. No table is
//! dropped here, as within one day of retention.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Index, Key};

pub(super) struct Hours {
    rows: u64,
    /// Keys in the newest hour.
    newest_rows: u64,
    hours: u64,
}

impl Hours {
    pub(super) fn new(rows: u64) -> Self {
        Self { rows, newest_rows: 0, hours: 1 }
    }
}

impl Index for Hours {
    fn prepare(&self, connection: &Connection) -> rusqlite::Result<()> {
        create(connection, 1)
    }

    fn insert(&mut self, connection: &Connection, key: &Key, n: i64) -> rusqlite::Result<bool> {
        if self.find(connection, key)?.is_some() {
            return Ok(false);
        }
        if self.newest_rows == self.rows {
            self.hours += 1;
            self.newest_rows = 0;
            create(connection, self.hours)?;
        }
        self.newest_rows += 1;
        let insert = format!("INSERT INTO keys_{} (key, n) VALUES (?1, ?2)", self.hours);
        connection.prepare_cached(&insert)?.execute(params![key, n])?;
        Ok(true)
    }

    fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
        for hour in (1..=self.hours).rev() {
            let mut select =
                connection.prepare_cached(&format!("SELECT n FROM keys_{hour} WHERE key = ?1"))?;
            let found = select.query_row(params![key], |row| row.get(0)).optional()?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

fn create(connection: &Connection, hour: u64) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "CREATE TABLE keys_{hour} (key BLOB PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    ))
}
