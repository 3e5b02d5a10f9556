//! Schema migrations, one numbered SQL file each, run once inside a transaction.

use rusqlite::Connection;

/// All migrations, oldest first; a store of schema version k has run the first k.
const STEPS: [&str; 3] = [
    include_str!("migrations/0001_tasks.sql"),
    include_str!("migrations/0002_lists.sql"),
    include_str!("migrations/0003_found.sql"),
];

/// Why a store cannot be migrated.
pub(super) enum Failure {
    /// A later version of this program has migrated the store.
    Newer {
        /// Schema version of the store.
        found: i64,
        /// Newest schema version of this program.
        known: i64,
    },
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// Runs the migrations that this store has not run yet.
pub(super) fn run(connection: &mut Connection) -> Result<(), Failure> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = STEPS.len() as i64;
    if found > known {
        return Err(Failure::Newer { found, known });
    }
    for (version, step) in (1..).zip(STEPS).skip_while(|(version, _)| *version <= found) {
        let tx = connection.transaction()?;
        tx.execute_batch(step)?;
        tx.pragma_update(None, "user_version", version)?;
        tx.commit()?;
    }
    Ok(())
}
