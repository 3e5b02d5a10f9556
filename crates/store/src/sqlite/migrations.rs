//! Schema migrations, one numbered SQL file each, run once inside a transaction. Newer schemas are refused before
//! (`probe.rs`).

use rusqlite::Connection;

use crate::sqlite::files::probe::APPLICATION_ID;

/// All migrations, oldest first; a store of schema version k has run the first k.
const STEPS: [&str; 12] = [
    include_str!("migrations/0001_tasks.sql"),
    include_str!("migrations/0002_lists.sql"),
    include_str!("migrations/0003_found.sql"),
    include_str!("migrations/0004_owners.sql"),
    include_str!("migrations/0005_long_turns.sql"),
    include_str!("migrations/0006_api_keys.sql"),
    include_str!("migrations/0007_stored_bytes.sql"),
    include_str!("migrations/0008_agent_switches.sql"),
    include_str!("migrations/0009_webhooks.sql"),
    include_str!("migrations/0010_due_by_host.sql"),
    include_str!("migrations/0011_certificate_names.sql"),
    include_str!("migrations/0012_selected_skills.sql"),
];

/// The schema version after all migrations.
pub(super) const fn newest() -> i64 {
    STEPS.len() as i64
}

/// Runs the migrations that this store has not run yet.
pub(super) fn run(connection: &mut Connection) -> rusqlite::Result<()> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    // An index of a large table is sorted on disk: in memory it could need gigabytes.
    connection.pragma_update(None, "temp_store", "FILE")?;
    for (version, step) in (1..).zip(STEPS).skip_while(|(version, _)| *version <= found) {
        if found > 0 {
            tracing::info!(version, "migrating the store to a new schema");
        }
        let tx = connection.transaction()?;
        tx.execute_batch(step)?;
        tx.pragma_update(None, "user_version", version)?;
        tx.commit()?;
    }
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // After the migrations: a file that has the id has a schema.
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if id == APPLICATION_ID {
        Ok(())
    } else {
        connection.pragma_update(None, "application_id", APPLICATION_ID)
    }
}
