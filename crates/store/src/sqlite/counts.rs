//! Counts of visible tasks per scope and state, and per time bucket for long lists. Written once per commit, not per
//! change.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::tallies::{ListedTask, Tallies};

/// Differences that the current commit makes to the stored counts.
pub(super) struct Counts {
    by_state: HashMap<(i64, u8), i64>,
    pub(super) tallies: Tallies,
}

impl Counts {
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        Ok(Self { by_state: HashMap::new(), tallies: Tallies::load(connection)? })
    }

    /// Counts a task that lists now include.
    pub(super) fn add(&mut self, task: &ListedTask) {
        self.count(task, 1);
    }

    /// Subtracts a task that lists no longer include with this state and time.
    pub(super) fn remove(&mut self, task: &ListedTask) {
        self.count(task, -1);
    }

    fn count(&mut self, task: &ListedTask, difference: i64) {
        *self.by_state.entry((task.scope, task.state.number())).or_default() += difference;
        self.tallies.count(task, difference);
    }

    /// Writes the differences and counts one more bucket of a long list.
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
