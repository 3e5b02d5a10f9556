//! How many visible tasks each owner has in each state, written once for a whole commit.

use std::collections::HashMap;

use protocol::TaskState;
use rusqlite::{Connection, params};

/// The differences a commit makes.
#[derive(Default)]
pub(super) struct Counts(HashMap<(i64, u8), i64>);

impl Counts {
    /// A task is shown in this state.
    pub(super) fn shown(&mut self, scope: i64, state: TaskState) {
        *self.0.entry((scope, state.number())).or_default() += 1;
    }

    /// A task is no longer shown in this state.
    pub(super) fn gone(&mut self, scope: i64, state: TaskState) {
        *self.0.entry((scope, state.number())).or_default() -= 1;
    }

    /// Writes the differences.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for ((scope, state), difference) in self.0.drain().filter(|entry| entry.1 != 0) {
            connection
                .prepare_cached(
                    "INSERT INTO counts (scope, state, n) VALUES (?1, ?2, ?3)
                     ON CONFLICT (scope, state) DO UPDATE SET n = n + excluded.n",
                )?
                .execute(params![scope, state, difference])?;
        }
        Ok(())
    }
}
