//! Keys in a unique index on the task rows. The row itself inserts its key: a second row is rejected.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Index, Key};

pub(super) struct Tree;

impl Index for Tree {
    fn prepare(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch("CREATE UNIQUE INDEX tasks_key ON tasks (key)")
    }

    fn insert(&mut self, _connection: &Connection, _key: &Key, _n: i64) -> rusqlite::Result<bool> {
        Ok(true)
    }

    fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
        let mut select = connection.prepare_cached("SELECT n FROM tasks WHERE key = ?1")?;
        select.query_row(params![key], |row| row.get(0)).optional()
    }
}
