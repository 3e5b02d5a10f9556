//! How many visible tasks each owner has in each state, and how many a long list has from a time on, written once for a
//! whole commit.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::tallies::{Listed, Tallies};

/// The differences a commit makes.
pub(super) struct Counts {
    by_state: HashMap<(i64, u8), i64>,
    pub(super) tallies: Tallies,
}

impl Counts {
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        Ok(Self { by_state: HashMap::new(), tallies: Tallies::load(connection)? })
    }

    /// A task is shown so.
    pub(super) fn shown(&mut self, task: &Listed) {
        self.count(task, 1);
    }

    /// A task is no longer shown so.
    pub(super) fn gone(&mut self, task: &Listed) {
        self.count(task, -1);
    }

    fn count(&mut self, task: &Listed, difference: i64) {
        *self.by_state.entry((task.scope, task.state.number())).or_default() += difference;
        self.tallies.count(task, difference);
    }

    /// Writes the differences, and counts a little more of what is long to count.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for ((scope, state), difference) in self.by_state.drain().filter(|entry| entry.1 != 0) {
            connection
                .prepare_cached(
                    "INSERT INTO counts (scope, state, n) VALUES (?1, ?2, ?3)
                     ON CONFLICT (scope, state) DO UPDATE SET n = n + excluded.n",
                )?
                .execute(params![scope, state, difference])?;
        }
        self.tallies.flush(connection)?;
        self.tallies.maintain(connection)
    }
}
