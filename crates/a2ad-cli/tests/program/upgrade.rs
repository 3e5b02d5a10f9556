//! Stores of earlier schemas: the program opens them, also after it was killed while it migrated them.

use std::{fs, path::Path, time::Duration};

use rusqlite::{Connection, OptionalExtension as _};
use testkit::{
    json::{artifact_text, state},
    process::Server,
    rpc::{Caller, message},
};
use tokio::process::Command;

use super::common::{ANY_PORT, a2ad};

/// A store of schema 3, written by the last program with that schema, which was then killed.
const SCHEMA_3: &str = include_str!("../../../store/tests/fixtures/schema-3.sql");
/// The fourth migration.
const TO_SCHEMA_4: &str = include_str!("../../../store/src/sqlite/migrations/0004_owners.sql");
/// The fifth one.
const TO_SCHEMA_5: &str = include_str!("../../../store/src/sqlite/migrations/0005_long_turns.sql");
/// Undoes the second and third migration.
const TO_SCHEMA_1: &str = "
    DROP TABLE tallied; DROP TABLE tallies; DROP INDEX tasks_context; DROP INDEX tasks_purged;
    DROP INDEX tasks_suspects; DROP INDEX turn_keys_by_key; DROP INDEX tasks_named_key;
    CREATE INDEX tasks_context ON tasks (scope, context, n) WHERE context <> n;
    CREATE INDEX tasks_purged ON tasks (terminal_at) WHERE visible = 3;
    ALTER TABLE tasks DROP COLUMN purged_at; PRAGMA user_version = 1";
/// Keeps the tasks of the fixture, also the one that waits for its client, whatever the date is.
const CONFIG: &str = "[store.retention]\nmax_age = \"36500d\"\nkeys = \"36500d\"\n\
                      [limits]\ninterrupted_ttl = \"36500d\"\n";
/// Kills at equal intervals; as many more may follow to hit the migration.
const KILLS: u32 = 16;
/// Rows that make a migration long enough to be hit by a kill.
const MORE_KEYS: usize = 40_000;

/// The tasks of the fixture that have ended: agent, id, text of the artifacts.
const ENDED: [(&str, &str, &str); 6] = [
    ("echo", "task_jmrwq7g350dmsae1cxap8fzqzn9c6", "hello"),
    ("echo", "task_vefxs1mb3ekvzg1rym58endg0g3ha", "first in the chat"),
    ("echo", "task_6mz05bfper2jsc4xq5rbcymbya1x0", "second in the chat"),
    ("slow-writer", "task_41z9r4t8n5axc7ba4s05b80hck9m0", "Section 1 of 1: more about the sea."),
    ("echo", "task_m7ek3tvnv8wjeb5pt20b0hnat1p1e", "with a key"),
    ("echo", "client-chosen", "from the draft"),
];
/// The task of the approver, which waits for an answer.
const WAITING: &str = "task_eb9z4fm5ktzztm8qpznc91bgzk62e";
/// The task that was running.
const RUNNING: &str = "task_y7bdn18chqcy2tka8ryvpxp5338zp";

/// Creates a store of schema 3 as its program left it.
fn create(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    let before = "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL";
    connection.execute_batch(before).unwrap();
    connection.execute_batch(SCHEMA_3).unwrap();
    connection.pragma_update(None, "user_version", 3).unwrap();
    connection
}

fn serve(folder: &Path) -> Command {
    fs::write(folder.join("a2ad.toml"), CONFIG).unwrap();
    a2ad(folder, &["serve", "--listen", ANY_PORT, "--store", "old.db"])
}

/// Everything that was acknowledged is there, and work goes on.
async fn check_tasks(server: &Server) {
    let mut caller = Caller::new(server.address);
    for (agent, id, text) in ENDED {
        let task = caller.get(agent, id).await.unwrap().unwrap_or_else(|| panic!("{id} is missing"));
        assert_eq!((state(&task), artifact_text(&task).trim_end()), ("TASK_STATE_COMPLETED", text), "{id}");
    }
    let running = caller.get("echo", RUNNING).await.unwrap().unwrap();
    assert_eq!(state(&running), "TASK_STATE_WORKING");
    let waiting = caller.get("approver", WAITING).await.unwrap().unwrap();
    assert_eq!(state(&waiting), "TASK_STATE_INPUT_REQUIRED");
    // A repeated message is recognised by its key.
    let first = ENDED.iter().find(|task| task.2 == "with a key").unwrap();
    let repeated = message("m-6", "with a key", false);
    let reply =
        caller.call_with(&[("Idempotency-Key", "key-1")], "echo", "SendMessage", repeated).await.unwrap();
    assert_eq!((reply.replayed, reply.result["task"]["id"].as_str()), (true, Some(first.1)));
}

#[tokio::test]
async fn a_store_of_a_previous_schema_is_opened() {
    for version in [1_i64, 3, 4, 5] {
        let folder = tempfile::tempdir().unwrap();
        let connection = create(&folder.path().join("old.db"));
        match version {
            1 => connection.execute_batch(TO_SCHEMA_1).unwrap(),
            4 | 5 => {
                let migrations = [TO_SCHEMA_4, TO_SCHEMA_5];
                connection
                    .execute_batch(&migrations[..usize::try_from(version - 3).unwrap()].concat())
                    .unwrap();
                connection.pragma_update(None, "user_version", version).unwrap();
            }
            _ => {}
        }
        drop(connection);
        let server = Server::start_command(serve(folder.path())).await.unwrap();
        check_tasks(&server).await;
        let mut caller = Caller::new(server.address);
        let mut answer = message("m-9", "approve", false);
        answer["message"]["taskId"] = WAITING.into();
        let reply = caller.call("approver", "SendMessage", answer).await.unwrap();
        assert_eq!(state(&reply["task"]), "TASK_STATE_COMPLETED", "{reply}");
        server.kill().await.unwrap();
        let stored = Connection::open(folder.path().join("old.db")).unwrap();
        let number = |name| stored.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert!(number("user_version") >= 6, "schema {version}");
        assert_eq!(number("application_id"), i64::from(u32::from_be_bytes(*b"a2ad")));
    }
}

/// Kills the program at moments from its start to the end of the migrations: each leaves a store that is migrated by the
/// next start, with everything in it. At least one kill is during the migrations.
#[tokio::test]
async fn a_kill_during_a_migration_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("template.db");
    let connection = create(&template);
    connection.execute_batch(TO_SCHEMA_1).unwrap();
    let more = format!(
        "WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {MORE_KEYS})
         INSERT INTO turn_keys SELECT 1, randomblob(16), randomblob(16), 1 FROM numbers"
    );
    connection.execute_batch(&more).unwrap();
    // Close with an empty log, so that the file alone is the store.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let store = folder.path().join("old.db");
    let renew = || {
        for end in ["", "-wal", "-shm", ".lock"] {
            let _ = fs::remove_file(folder.path().join(format!("old.db{end}")));
        }
        fs::copy(&template, &store).unwrap();
    };
    renew();
    let server = Server::start_command(serve(folder.path())).await.unwrap();
    let start = server.ready_after;
    server.kill().await.unwrap();
    let newest = schema(&store);
    let (mut unmigrated, mut hits, mut migrated) = (0, 0, 0);
    // The latest kill before the migrations and the earliest one after them.
    let (mut before, mut after) = (Duration::ZERO, start);
    for kill in 0..2 * KILLS {
        if kill >= KILLS && unmigrated > 0 && hits > 0 && migrated > 0 {
            break;
        }
        renew();
        // The start of a process on a busy machine may take longer than the measured one.
        let delay = match kill.checked_sub(KILLS) {
            None => start * kill / KILLS,
            Some(more) if migrated == 0 => start * (more + 2),
            Some(_) if unmigrated == 0 => Duration::ZERO,
            Some(_) => (before + after) / 2,
        };
        let mut child = serve(folder.path()).spawn().unwrap();
        tokio::time::sleep(delay).await;
        child.kill().await.unwrap();
        match left_by_kill(&store, newest) {
            Moment::Before => (unmigrated, before) = (unmigrated + 1, before.max(delay)),
            Moment::During => hits += 1,
            Moment::After => (migrated, after) = (migrated + 1, after.min(delay)),
        }
        // The program gets the files as the kill left them.
        let server = Server::start_command(serve(folder.path())).await.unwrap();
        check_tasks(&server).await;
        server.kill().await.unwrap();
    }
    let counts = format!("kills before, during and after the migrations: {unmigrated}, {hits}, {migrated}");
    assert!(unmigrated > 0 && hits > 0 && migrated > 0, "{counts}");
}

/// When a process was killed.
enum Moment {
    Before,
    During,
    After,
}

/// Finds out from a copy of the files when the process was killed. Opening the store itself would repair it.
fn left_by_kill(store: &Path, newest: i64) -> Moment {
    let copy = tempfile::tempdir().unwrap();
    let log = store.with_file_name("old.db-wal");
    fs::copy(store, copy.path().join("old.db")).unwrap();
    let log_length = fs::copy(log, copy.path().join("old.db-wal")).unwrap_or(0);
    match schema(&copy.path().join("old.db")) {
        // Changes are in the log, without the commit.
        1 if log_length > 0 => Moment::During,
        1 => Moment::Before,
        version if version < newest => Moment::During,
        _ => Moment::After,
    }
}

/// The schema version of the store that a killed process left. The tables must be those of that version.
fn schema(store: &Path) -> i64 {
    let connection = Connection::open(store).unwrap();
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let has = |name: &str| {
        let query = "SELECT 1 FROM sqlite_schema WHERE name = ?1";
        connection.query_row(query, [name], |_| Ok(())).optional().unwrap().is_some()
    };
    let names = ["tallies", "turn_keys_by_key", "tasks_suspects", "agent_counts", "journal", "api_keys"];
    let expected = [
        matches!(version, 2 | 3),
        version >= 3,
        matches!(version, 3 | 4),
        version >= 4,
        version >= 5,
        version >= 6,
    ];
    let found = names.map(has);
    assert_eq!(found, expected, "schema {version}");
    let damage: String = connection.query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
    assert_eq!(damage, "ok");
    version
}
